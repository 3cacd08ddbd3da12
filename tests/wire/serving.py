"""A server process for tests that end it: opens the database named first, prints the port, serves, and closes when it has ended.

It is asked to end in the middle of things, and must not have ended for another reason by then: it waits for bodies as long as it takes, and
when it ends as long as is named second, in seconds.
"""

import sys

from pegword.assembly import open_services
from pegword.http import protocol, server
from pegword.http.app import create_app
from pegword.settings import database_of, load

if __name__ == "__main__":
    protocol.BODY_S, server.DRAIN_S = 3_600.0, int(sys.argv[2])
    settings = load(environment={})
    services = open_services(database_of(sys.argv[1]), settings)
    services.housekeeper.start()
    server.run(create_app(services, settings), "127.0.0.1", 0, listening=lambda port: print(port, flush=True))
    services.close()
