"""The last import of the fork server: the garbage collector need not look at what was imported, in no fork."""

import gc

gc.freeze()
