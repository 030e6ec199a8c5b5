"""Privacy loss distributions: values, curves, order and lattice, every number proven.

Read it in this order:

    arithmetic/                  what each platform function is charged; exact rationals
    families/                    one family of losses per file: closed forms of curve and moments
    pld, constructors            the value `Pld`, and where it comes from
    support/                     few atoms written out, largest and smallest losses
    curve/evaluate               which method evaluates a curve: a table of eight
    curve/epsilon, tradeoff,
    curve/renyi                  what is read off a curve
    order/                       the Blackwell order
    discretise/                  finite PLDs above and below others: a table of all of them
    lattice, amplification       supremum, infimum, Blackwell's kernel; sampling
    residue/                     GDP and zCDP parameters, GDP residues and their certificates
    running_composition          a composition that grows and is read after each query
"""
