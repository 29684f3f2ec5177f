"""Write the generated part of the client: ``python -m client_generator PATH_OF_DATAMODEL_CODEGEN``."""

import sys

from client_generator.write import write

write(sys.argv[1])
