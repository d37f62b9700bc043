// What was not said, and values in the types of their users.
#include <algorithm>

#include "server/config/config.h"
#include "server/config/schema.h"
#include "server/config/values.h"

namespace longwire::config {
namespace {

// Many programs that one user starts in loops on one host stay below it, as does what a server
// without warm workers can start.
constexpr uint32_t kOpeningsPerSecond = 25;
constexpr const char* kUsageName = "/usage.jsonl";
constexpr const char* kKernelsName = "/kernels.tsv";

void Fill(Message* message);

// Blocks: the one that is always there, or each element of the list.
void FillBlock(const FieldDescriptor* field, Message* message) {
  const auto* reflection = message->GetReflection();
  if (field->is_repeated()) {
    for (int i = 0; i < reflection->FieldSize(*message, field); ++i) {
      Fill(reflection->MutableRepeatedMessage(message, field, i));
    }
  } else if (!IsOptionalBlock(field) || reflection->HasField(*message, field)) {
    Fill(reflection->MutableMessage(message, field));
  }
}

void Fill(Message* message) {
  for (int i = 0; i < message->GetDescriptor()->field_count(); ++i) {
    const FieldDescriptor* field = message->GetDescriptor()->field(i);
    const auto* reflection = message->GetReflection();
    if (IsBlock(field)) {
      FillBlock(field, message);
      continue;
    }
    bool said = field->is_repeated() ? reflection->FieldSize(*message, field) != 0
                                     : reflection->HasField(*message, field);
    std::string hint;
    if (said || EntryOf(field).default_value().empty()) continue;
    SetValue(EntryOf(field).default_value(), field, message, &hint);
  }
}

}  // namespace

void FillDefaults(const std::string& runtime_folder, Config* config,
                  const std::string& cache_folder, const std::string& state_folder) {
  Fill(config);
  ModuleCache& modules = *config->mutable_module_cache();
  if (!modules.has_directory()) {
    modules.set_directory(cache_folder.empty() ? "none" : cache_folder + "/modules");
  }
  if (!modules.has_compiled()) {
    modules.set_compiled(cache_folder.empty() ? "none" : cache_folder + "/compiled");
  }
  if (!config->usage().has_file()) {
    config->mutable_usage()->set_file(state_folder.empty() ? "none" : state_folder + kUsageName);
  }
  if (!config->has_kernel_history()) {
    config->set_kernel_history(state_folder.empty() ? "none" : state_folder + kKernelsName);
  }
  if (!config->has_checkpoint_dir()) config->set_checkpoint_dir("none");
  // The socket's file keeps its name: clients have it in LONGWIRE_SERVER.
  if (!config->has_local_socket()) config->set_local_socket(runtime_folder + "/door");
  if (!config->has_warden()) config->set_warden(runtime_folder + "/warden");
}

std::vector<transport::Address> ListenAddresses(const Config& config) {
  std::vector<transport::Address> addresses;
  std::string problem;
  for (const std::string& text : config.listen()) {
    if (auto address = transport::ParseAddress(text, &problem)) addresses.push_back(*address);
  }
  return addresses;
}

bool LeavesHost(const Config& config) {
  std::vector<transport::Address> addresses = ListenAddresses(config);
  return std::ranges::any_of(
      addresses, [](const transport::Address& one) { return !transport::IsLoopback(one); });
}

std::chrono::milliseconds ResumeGrace(const Config& config) {
  return std::chrono::duration_cast<std::chrono::milliseconds>(
      std::chrono::nanoseconds(config.resume_grace()));
}

std::chrono::milliseconds CheckpointGrace(const Config& config) {
  return std::chrono::duration_cast<std::chrono::milliseconds>(
      std::chrono::nanoseconds(config.checkpoint_grace()));
}

std::string CheckpointFolder(const Config& config) {
  return config.checkpoint_dir() == "none" ? "" : config.checkpoint_dir();
}

std::string KernelHistory(const Config& config) {
  return config.kernel_history() == "none" ? "" : config.kernel_history();
}

// No default of the schema: whether somebody has set it is shown (settings/safe_limits.h).
uint32_t OpeningsPerSecond(const Config& config) {
  const Admission& told = config.admission();
  return told.has_openings_per_second() ? told.openings_per_second() : kOpeningsPerSecond;
}

std::string LocalSocketPath(const Config& config) {
  return config.local_socket() == "none" ? "" : config.local_socket();
}

}  // namespace longwire::config
