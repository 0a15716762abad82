"""Numbers and drawings of the book's figures: ``series_*`` and ``draw_*``.

Series are plain arrays made with numpy alone; drawings take axes from whoever shows
them, so the same pair serves a chapter, a notebook widget and the built page.
"""
