"""The templates of the sites: functions that render a page."""
