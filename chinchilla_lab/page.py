"""What chapters need beside the library: numbers for their prose."""

__all__ = ["say"]


def say(**numbers: object) -> None:
    """Put computed numbers where the prose of a chapter can name them.

    Parameters
    ----------
    **numbers : object
        Text by name; ``say(n_best="9.05B")`` serves ``{glue:text}`n-best` ``, [-]

    Notes
    -----
    Outside the book's builder, where there is no such prose, it does nothing.
    """
    try:
        from myst_nb import glue
    except ImportError:
        return
    for name, value in numbers.items():
        glue(name.replace("_", "-"), str(value), display=False)
