// Prints the commented default file, for deploy/longwired.yaml.
#include <cstdio>

#include "server/config/config.h"

int main() {
  std::fputs(longwire::config::DefaultFile().c_str(), stdout);
  return 0;
}
