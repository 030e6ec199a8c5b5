"""Privacy loss distributions: values, curves, order and lattice, every number proven.

Read it in this order:

    special                      what each platform function is charged
    exact, atoms                 finite PLDs, in rationals and beside them in floats
    gaussian, laplace,
    randomized_response          the closed forms
    value, constructors          `Pld` and where it comes from
    table, contour, evaluate     composition: written out, or moments on a vertical line
    curves, renyi                epsilon, tradeoff, Rényi, conjugates
    cells, ends, domination,
    order, precise               the Blackwell order
    discretise, lattice, kernel  finite bounds, supremum and infimum, Blackwell's kernel
"""
