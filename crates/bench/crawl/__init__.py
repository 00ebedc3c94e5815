"""Makes the pages of a crawl, with planted near-duplicates, and writes them as crawlers do: see crawl_pages.py."""
