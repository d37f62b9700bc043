// The operator's policy for memory, in the keeper: how it comes here, and what it hears.
#include "server/protocol/policies.h"

#include <unistd.h>

#include <cstdio>
#include <utility>

#include "server/images/sealed_memory.h"
#include "server/keeper/keeper.h"

namespace longwire::keeper {
namespace {

// Null with a sentence.
std::shared_ptr<policy::Program> LoadPolicy(const UsePolicy& use, wire::Message& message,
                                            std::string* sentence) {
  *sentence = "its object did not come as it was sent";
  if (message.descriptors.size() != kPolicyDescriptors) return nullptr;
  const wire::Descriptor& object = message.descriptors[kPolicyObject];
  if (use.bytes > policy::kMaxObjectBytes || !images::IsSealed(object, use.bytes)) return nullptr;
  std::vector<std::byte> bytes(use.bytes);
  if (!images::ReadAll(object, bytes)) return nullptr;
  policy::Engine* engine = policy::LoadEngine(sentence);
  if (engine == nullptr) return nullptr;
  wire::Descriptor store(dup(message.descriptors[kPolicyStore].get()));
  return policy::Program::Load(use.name, bytes, *engine, sentence, std::move(store));
}

void SayEnd(uint32_t device, const std::string& name, const std::string& why) {
  std::fprintf(stderr,
               "longwire-keeper: device %u: the policy '%s' was unloaded: %s. What is built in "
               "decides again\n",
               device, name.c_str(), why.c_str());
}

}  // namespace

PoolOptions Keeper::WithLog(PoolOptions options, EventLog* events, SwapPolicy* policy) {
  options.events = events;
  options.policy = policy;
  return options;
}

bool Keeper::HandlePolicyPacket(wire::Message& message) {
  Placed placed;
  if (message::Unpack(message.bytes, &placed) == wire::WireResult::kOk) {
    policy_->SetOwner(placed.worker, placed.session, placed.tenant);
    return true;
  }
  UsePolicy use;
  if (message::Unpack(message.bytes, &use) != wire::WireResult::kOk) return false;
  policy_->Use(nullptr);
  if (use.number == 0) return true;
  std::string sentence;
  auto program = LoadPolicy(use, message, &sentence);
  const uint32_t device = device_number_;
  if (program == nullptr) {
    const std::string why =
        "the keeper of device " + std::to_string(device) + " cannot run it: " + sentence;
    SayEnd(device, use.name, why);
    if (message.descriptors.size() == kPolicyDescriptors) {
      policy::Store::EndAt(std::move(message.descriptors[kPolicyStore]), why);
    }
    return true;
  }
  program->set_on_end(
      [device, name = use.name](const std::string& why) { SayEnd(device, name, why); });
  policy_->Use(program);
  // Only now: longwired says that the policy decides here.
  if (!program->Take(device, use.taker)) {
    program->End("the keeper of device " + std::to_string(device) +
                 " cannot say that it runs it: policies for memory are for devices 0 to 63");
  }
  return true;
}

}  // namespace longwire::keeper
