"""Barkspider."""
