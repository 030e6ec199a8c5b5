"""Finite PLDs above and below a given one.

To replace a PLD by a finite one call `above(pld, accuracy)` or `below(pld, accuracy)`; both return
exact rational atoms, and the side survives every rounding. What is not a `Pld` has a separate
function, with a `side`. All of them end in a polygon around a testing region, rounded outward or
inward to multiples of 2^-400: `region_above` or `region_below` in `finite.py`.

    given                                  function                            proof
    a PLD                                  finite.above, finite.below          finite.py
    a PLD with rational atoms              finite.exact_atoms: itself          arithmetic/exact.py
    enclosures of both halves of a curve   finite.finite (a `Profile`)         finite.py
    points of a curve                      finite.region_above, region_below   finite.py
    bounds on Rényi divergences            regions.largest                     regions.py
    the discrete Gaussian                  regions.discrete_gaussian           regions.py

The GDP residue needs the excess `e_L` of a finite loss, in floats with charged errors. These lists
are in `residue/`, because only its certificates read them:

    given                                  function            file in residue/, with its proof
    a finite PLD                           finite_excess       finite.py
    any composition, above it              lattice_excess      lattice_excess.py
    a shorter list above a long one        coarsened           contact_equation.py
    a shorter list, the same transform     compressed          contact_equation.py
"""
