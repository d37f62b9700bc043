// The commands of longwire. Each gets the arguments after its name and returns the exit status.
#pragma once

#include <string>
#include <vector>

namespace longwire::cli {

using Arguments = std::vector<std::string>;

int Admin(const Arguments& arguments);
int Bench(const Arguments& arguments);
int Cert(const Arguments& arguments);
int Invite(const Arguments& arguments);
int Join(const Arguments& arguments);
int Run(const Arguments& arguments);
int Doctor(const Arguments& arguments);
int Config(const Arguments& arguments);
int Memory(const Arguments& arguments);
int Status(const Arguments& arguments);
int Top(const Arguments& arguments);
int Trace(const Arguments& arguments);
int Usage(const Arguments& arguments);

inline constexpr int kUsageStatus = 2;

}  // namespace longwire::cli
