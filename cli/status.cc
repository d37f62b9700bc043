#include "cli/commands.h"
namespace longwire::cli {
int Status(const Arguments&) { return 1; }
int Doctor(const Arguments&) { return 1; }
}
