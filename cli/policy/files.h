// Files that longwire policy reads, and transcripts that it runs.
#pragma once

#include <optional>
#include <string>

namespace longwire::cli {

// None with a sentence: also when it is larger than any policy.
std::optional<std::string> ReadPolicyFile(const std::string& path, std::string* sentence);

// longwire policy test: runs the transcript with the policy in the place of what is built in, and
// prints what it prints then. 0 if that is what the transcript says, 1 if not.
int TestPolicy(const std::string& object, const std::string& transcript);

}  // namespace longwire::cli
