"""Every error windowpane raises, under one base class; its modules are the sections of docs/errors.md.

A message names the value, the key and the window it is about, and says what to do.
"""

from windowpane.errors.base import MistakeError as MistakeError
from windowpane.errors.base import WindowpaneError as WindowpaneError
from windowpane.errors.base import present as present
from windowpane.errors.connectors import *
from windowpane.errors.programs import *
from windowpane.errors.restarts import *
from windowpane.errors.rows import *
from windowpane.errors.sql import *
