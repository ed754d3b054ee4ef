"""Loads that commit rows together with the watermark they allow."""
