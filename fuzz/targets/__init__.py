"""
Fuzz targets: each module here holds a list ``TARGETS`` of `fuzz.harness.Target`.

A target for native code calls it through its Python binding, or is left out of
the list when that binding is not built.
"""
