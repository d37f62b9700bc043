#include <algorithm>

#include "cli/memory.h"
#include "cli/text.h"

namespace longwire::cli {
namespace {

constexpr size_t kColumns = 64;

struct Part {
  char letter = ' ';
  uint64_t bytes = 0;
};

// A column for each share of the total; what is there at all has at least one.
std::string Bar(const std::vector<Part>& parts, uint64_t total) {
  std::string bar;
  uint64_t sum = 0;
  for (const Part& part : parts) {
    sum += part.bytes;
    size_t end = static_cast<size_t>(static_cast<double>(sum) / static_cast<double>(total) *
                                     static_cast<double>(kColumns));
    if (part.bytes != 0) end = std::max(end, bar.size() + 1);
    bar.append(end > bar.size() ? end - bar.size() : 0, part.letter);
  }
  bar.resize(kColumns, '.');
  return bar;
}

std::string ChunksText(const transport::Device& device) {
  std::string text;
  for (const transport::ChunkSize& size : device.chunk_sizes()) {
    text += (text.empty() ? "  chunks: " : ", ") + BytesText(size.bytes()) + " x " +
            std::to_string(size.leased()) + " leased + " + std::to_string(size.idle()) + " idle";
  }
  return text.empty() ? text : text + "\n";
}

std::string Row(char letter, uint64_t bytes, const std::string& what) {
  std::string size = BytesText(bytes);
  size.insert(0, size.size() < 11 ? 11 - size.size() : 0, ' ');
  return std::string("  ") + letter + " " + size + "  " + what + "\n";
}

}  // namespace

std::string MemoryMap(const transport::InspectReply& reply, const transport::Device& device) {
  std::vector<Part> parts;
  std::string rows;
  uint64_t named = 0;
  char letter = 'A';
  for (const transport::Session& session : reply.sessions()) {
    for (const transport::SessionMemory& memory : session.memory()) {
      if (memory.device() != device.ordinal()) continue;
      if (memory.leased() + memory.swapped() + memory.charged() == 0) continue;
      parts.push_back({letter, memory.leased()});
      named += memory.leased();
      std::string what = "session " + std::to_string(session.id()) + " of " +
                         Printable(session.tenant()) + ": " + Printable(session.program());
      if (memory.idle() != 0) what += ", keeps " + BytesText(memory.idle()) + " free";
      if (memory.swapped() != 0) {
        what += ", has " + BytesText(memory.swapped()) + " in the host's memory";
      }
      if (memory.charged() != 0) {
        what += ", has " + BytesText(memory.charged()) + " that is not leased";
      }
      what += ", most ever " + BytesText(memory.leased_peak());
      rows += Row(letter, memory.leased(), what);
      letter = letter == 'Z' ? 'A' : static_cast<char>(letter + 1);
    }
  }
  uint64_t others = device.leased() - std::min(device.leased(), named);
  uint64_t kept = device.idle() - std::min(device.idle(), device.scrub_pending());
  uint64_t made = device.leased() + device.idle();
  uint64_t not_made = device.lendable() - std::min(device.lendable(), made);
  uint64_t contexts = device.total() - std::min(device.total(), device.lendable());
  const std::pair<Part, const char*> rest[] = {
      {{'?', others}, "sessions of others"},
      {{'~', device.scrub_pending()}, "idle, not scrubbed yet"},
      {{'-', kept}, "idle, kept for the next session"},
      {{'.', not_made}, "not in use"},
      {{'x', contexts}, "reserved for contexts and modules"}};
  for (const auto& [part, what] : rest) {
    if (part.bytes == 0) continue;
    parts.push_back(part);
    rows += Row(part.letter, part.bytes, what);
  }
  std::string text = "device " + std::to_string(device.ordinal()) + "  " +
                     Printable(device.name()) + "  " + BytesText(device.total()) + "\n";
  text += "  [" + Bar(parts, std::max<uint64_t>(device.total(), 1)) +
          "]  one letter: " + BytesText(device.total() / kColumns) + "\n";
  text += rows + ChunksText(device);
  text += "  " + std::to_string(device.refused()) + " leases refused, sessions asked " +
          std::to_string(device.asked()) + " times for what they keep free, " +
          BytesText(device.drained()) + " taken for others, " + BytesText(device.returned()) +
          " because unused\n";
  text += "  " + std::to_string(device.remaps()) + " copies of " + BytesText(device.remapped()) +
          " made by mapping\n";
  text +=
      "  " + BytesText(device.charged()) +
      " of sessions are not leased (arrays, graphs, variables, stacks); contexts and others have " +
      BytesText(device.others()) + "\n";
  if (device.swap_host_memory() != 0) {
    text += "  " + BytesText(device.swapped()) + " of " + BytesText(device.swap_host_memory()) +
            " of the host's memory hold sessions' memory; moved there " +
            BytesText(device.swapped_out()) + ", back " + BytesText(device.swapped_in()) + "\n";
  }
  return text;
}

}  // namespace longwire::cli
