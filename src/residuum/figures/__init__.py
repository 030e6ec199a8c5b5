"""Every picture, one function each.

    curves, yardstick    what commands draw of queries and of filters
    strategy_tree        any adversary as a tree
    gallery              the pictures of the documentation: each a frozen value with its numbers, a
                         caption built from them, and `draw`
    picture, style,
    lines                what these share

Nothing here touches global state: the caller saves or shows what is drawn.
"""
