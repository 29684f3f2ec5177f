"""The native tests, run by source file, and the fuzz targets, run over their kept inputs."""
