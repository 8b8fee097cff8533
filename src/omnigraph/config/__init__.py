"""Configuration files: operator config, credentials, project files, and the graph they select.

Files are read here and nowhere else; what comes out are frozen values. Nothing is printed: values carry
their warnings.
"""
