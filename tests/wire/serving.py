"""A server process for tests that end it: opens the database named first, prints the port, serves, and closes when it has ended."""

import sys

from pegword.assembly import open_services
from pegword.http.app import create_app
from pegword.http.server import run
from pegword.settings import database_of, load

if __name__ == "__main__":
    settings = load(environment={})
    services = open_services(database_of(sys.argv[1]), settings)
    services.housekeeper.start()
    run(create_app(services, settings), "127.0.0.1", 0, listening=lambda port: print(port, flush=True))
    services.close()
