// vitrail: the command line.  Each subcommand is a file of its own.
#include <fmt/core.h>

int main() {
  fmt::print("vitrail {}\n", VITRAIL_VERSION);
  return 0;
}
