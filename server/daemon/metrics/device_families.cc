// The devices, and what they are doing.
#include <algorithm>

#include "server/daemon/metrics/scrape.h"

namespace longwire::daemon {
namespace {

// Each byte has one state.
void AddMemory(const transport::Device& device, const Labels& labels, Family& family) {
  auto add = [&](const char* state, uint64_t bytes) {
    Labels both = labels;
    both.push_back({"state", state});
    family.Add(std::move(both), bytes);
  };
  const uint64_t clearing = std::min(device.scrub_pending(), device.idle());
  const uint64_t used = device.leased() + device.idle() + device.charged() + device.others();
  add("leased", device.leased());
  add("idle", device.idle() - clearing);
  add("clearing", clearing);
  add("charged", device.charged());
  add("others", device.others());
  add("free", device.total() - std::min(used, device.total()));
}

void AddState(const Scrape& scrape, Families* families) {
  Family& info = families->Gauge("longwire_device_info", "1 for each device, with what it is.");
  Family& keeper = families->Gauge("longwire_device_keeper_up",
                                   "1 while the process that keeps the device's memory runs; "
                                   "without it the device gets no sessions.");
  Family& cordoned = families->Gauge("longwire_device_cordoned",
                                     "1 while the device gets no new sessions by order of an "
                                     "administrator.");
  Family& busy = families->Gauge("longwire_device_busy_ratio",
                                 "Utilisation: the part of the last minute in which the device "
                                 "worked for sessions, 0 to 1.");
  Family& sessions =
      families->Gauge("longwire_device_sessions",
                      "Sessions on the device; one that has several devices counts on each.");
  for (const transport::Device& device : scrape.figures.devices()) {
    const std::string number = std::to_string(device.ordinal());
    info.Add({{"device", number}, {"name", device.name()}, {"uuid", device.uuid()}}, 1);
    const Labels labels = {{"device", number}};
    keeper.Add(labels, device.keeper_pid() != 0 ? 1 : 0);
    cordoned.Add(labels, device.cordoned() ? 1 : 0);
    busy.Add(labels, device.busy());
    sessions.Add(labels, device.sessions());
  }
}

void AddSwapping(const Scrape& scrape, Families* families) {
  Family& moved = families->Counter(
      "longwire_device_swapped_bytes_total",
      "Bytes of idle sessions that were moved to the host's memory (out), and back (in), since the "
      "device's keeper began.");
  Family& used = families->Gauge("longwire_device_swap_used_bytes",
                                 "Bytes of idle sessions in the host's memory now.");
  Family& size = families->Gauge("longwire_device_swap_size_bytes",
                                 "Memory of the host that is ready for bytes of idle sessions.");
  for (const transport::Device& device : scrape.figures.devices()) {
    const std::string number = std::to_string(device.ordinal());
    moved.Add({{"device", number}, {"direction", "out"}}, device.swapped_out());
    moved.Add({{"device", number}, {"direction", "in"}}, device.swapped_in());
    used.Add({{"device", number}}, device.swapped());
    size.Add({{"device", number}}, device.swap_host_memory());
  }
}

}  // namespace

void AddDevices(const Scrape& scrape, Families* families) {
  AddState(scrape, families);
  Family& total = families->Gauge("longwire_device_memory_total_bytes", "Memory of the device.");
  Family& lendable = families->Gauge("longwire_device_memory_lendable_bytes",
                                     "The part of the device's memory that sessions may have: "
                                     "without the reserve for contexts.");
  Family& memory = families->Gauge(
      "longwire_device_memory_bytes",
      "Memory of the device by state: leased to sessions, idle and clean, clearing (idle, not "
      "scrubbed yet), charged (of sessions, from the driver itself), others (contexts, the "
      "driver's own, other processes), free. Together they are the total.");
  Family& promised = families->Gauge("longwire_device_memory_promised_bytes",
                                     "Memory of the device that sessions declared and nobody else "
                                     "gets: what they use of it, and what is kept for them.");
  Family& refused = families->Counter("longwire_device_leases_refused_total",
                                      "Leases of memory that were refused, since the device's "
                                      "keeper began.");
  Family& asked = families->Counter("longwire_device_reclaims_total",
                                    "Times that a session was asked to give back memory that it "
                                    "keeps free, since the device's keeper began.");
  Family& reclaimed = families->Counter(
      "longwire_device_reclaimed_bytes_total",
      "Bytes that sessions gave back because another one lacked them (drain), or because they had "
      "not used them for long (unused), since the device's keeper began.");
  Family& remaps = families->Counter("longwire_device_remaps_total",
                                     "Copies of buffers that grow which were made by mapping their "
                                     "memory, since the device's keeper began.");
  Family& remapped =
      families->Counter("longwire_device_remapped_bytes_total",
                        "Bytes that were copied by mapping, since the device's keeper began.");
  for (const transport::Device& device : scrape.figures.devices()) {
    const std::string number = std::to_string(device.ordinal());
    const Labels labels = {{"device", number}};
    total.Add(labels, device.total());
    lendable.Add(labels, device.lendable());
    AddMemory(device, labels, memory);
    const uint64_t kept = std::min(device.promised(), device.promised_unused());
    promised.Add({{"device", number}, {"state", "used"}}, device.promised() - kept);
    promised.Add({{"device", number}, {"state", "kept"}}, kept);
    refused.Add(labels, device.refused());
    asked.Add(labels, device.asked());
    reclaimed.Add({{"device", number}, {"reason", "drain"}}, device.drained());
    reclaimed.Add({{"device", number}, {"reason", "unused"}}, device.returned());
    remaps.Add(labels, device.remaps());
    remapped.Add(labels, device.remapped());
  }
  AddSwapping(scrape, families);
}

}  // namespace longwire::daemon
