#include "server/config/schema.h"

#include <algorithm>
#include <cctype>
#include <limits>

#include "server/config/text.h"
#include "server/config/units.h"

namespace longwire::config {
namespace {

// Longer words are no misspelt keys.
constexpr size_t kLongestWord = 64;
constexpr size_t kShortestPart = 4;

std::string RangeText(const FieldDescriptor* field, uint64_t least, uint64_t most) {
  std::string low = UnitText(EntryOf(field).kind(), least);
  if (most == 0) return least == 0 ? "" : "at least " + low;
  return "from " + low + " to " + UnitText(EntryOf(field).kind(), most);
}

std::string ExpectedNumber(const FieldDescriptor* field) {
  const Entry& entry = EntryOf(field);
  if (entry.kind() == BYTES) {
    std::string range = RangeText(field, entry.least(), entry.most());
    std::string text = "a size such as 512MiB" + (range.empty() ? "" : ", " + range);
    if (entry.multiple_of() != 0) text += ", a multiple of " + UnitText(BYTES, entry.multiple_of());
    return text;
  }
  std::string range = RangeText(field, entry.least(), LargestValue(field));
  return (entry.kind() == DURATION ? "a time such as 30s, 2ms or 50us, " : "a number ") + range;
}

std::string ExpectedText(const FieldDescriptor* field) {
  switch (EntryOf(field).kind()) {
    case PATH:
      return "an absolute path";
    case ADDRESS:
      return "host:port";
    case NAME:
      return "a name of letters, digits, '-', '_' and '.', at most " + std::to_string(kLongestName);
    case DRIVER:
      return "auto, software or the absolute path of a driver library";
    case IDENTITY:
      return "the common name of a certificate, uid:N or loopback";
    default:
      return "text";
  }
}

std::string Simplified(const std::string& word) {
  std::string simple;
  for (char c : word) simple += c == '-' ? '_' : static_cast<char>(std::tolower(c));
  return simple;
}

// How many letters have to be added, removed or replaced.
size_t Distance(const std::string& a, const std::string& b) {
  std::vector<size_t> row(b.size() + 1);
  for (size_t j = 0; j <= b.size(); ++j) row[j] = j;
  for (size_t i = 1; i <= a.size(); ++i) {
    size_t diagonal = row[0];
    row[0] = i;
    for (size_t j = 1; j <= b.size(); ++j) {
      size_t replaced = diagonal + (a[i - 1] == b[j - 1] ? 0 : 1);
      diagonal = row[j];
      row[j] = std::min({replaced, row[j] + 1, row[j - 1] + 1});
    }
  }
  return row[b.size()];
}

}  // namespace

const Entry& EntryOf(const FieldDescriptor* field) { return field->options().GetExtension(entry); }

bool IsBlock(const FieldDescriptor* field) {
  return field->cpp_type() == FieldDescriptor::CPPTYPE_MESSAGE;
}

bool IsOptionalBlock(const FieldDescriptor* field) {
  if (!IsBlock(field)) return false;
  for (int i = 0; i < field->message_type()->field_count(); ++i) {
    if (EntryOf(field->message_type()->field(i)).required()) return true;
  }
  return false;
}

uint64_t LargestValue(const FieldDescriptor* field) {
  if (EntryOf(field).most() != 0) return EntryOf(field).most();
  if (field->cpp_type() == FieldDescriptor::CPPTYPE_UINT32) {
    return std::numeric_limits<uint32_t>::max();
  }
  return field->cpp_type() == FieldDescriptor::CPPTYPE_UINT64 ? std::numeric_limits<uint64_t>::max()
                                                              : 0;
}

std::string ExpectedValue(const FieldDescriptor* field) {
  if (!EntryOf(field).expected().empty()) return EntryOf(field).expected();
  switch (field->cpp_type()) {
    case FieldDescriptor::CPPTYPE_MESSAGE:
      return "keys with values (" + Alternatives(KeysOf(field->message_type())) + ")";
    case FieldDescriptor::CPPTYPE_BOOL:
      return "true or false";
    case FieldDescriptor::CPPTYPE_ENUM: {
      std::vector<std::string> words;
      for (int i = 0; i < field->enum_type()->value_count(); ++i) {
        words.push_back(field->enum_type()->value(i)->name());
      }
      return Alternatives(words);
    }
    case FieldDescriptor::CPPTYPE_STRING:
      return ExpectedText(field) + (EntryOf(field).none_allowed() ? " or none" : "");
    default:
      return ExpectedNumber(field) + (EntryOf(field).forever_allowed() ? ", or forever" : "");
  }
}

std::string Expected(const FieldDescriptor* field) {
  if (!field->is_repeated()) return ExpectedValue(field);
  if (!IsBlock(field)) return ExpectedValue(field) + ", or a list of such";
  return "a list, each element with keys (" + Alternatives(KeysOf(field->message_type())) + ")";
}

const FieldDescriptor* FieldOf(const google::protobuf::Descriptor* message,
                               const std::string& key) {
  if (const FieldDescriptor* field = message->FindFieldByName(key)) return field;
  for (int i = 0; i < message->field_count(); ++i) {
    const FieldDescriptor* field = message->field(i);
    if (!key.empty() && EntryOf(field).former_name() == key) return field;
  }
  return nullptr;
}

std::vector<std::string> KeysOf(const google::protobuf::Descriptor* message) {
  std::vector<std::string> keys;
  for (int i = 0; i < message->field_count(); ++i) keys.push_back(message->field(i)->name());
  return keys;
}

std::string Closest(const std::string& word, const std::vector<std::string>& known) {
  if (word.size() > kLongestWord) return {};
  std::string simple = Simplified(word);
  std::string best;
  // A third of the letters may be wrong.
  size_t best_distance = std::max<size_t>(1, word.size() / 3) + 1;
  for (const std::string& candidate : known) {
    size_t distance = Distance(simple, candidate);
    // One is the other with something added: near enough, if nothing else is nearer.
    size_t shorter = std::min(simple.size(), candidate.size());
    bool extended =
        shorter >= kShortestPart && simple.substr(0, shorter) == candidate.substr(0, shorter);
    if (extended) distance = std::min(distance, best_distance - 1);
    if (distance >= best_distance) continue;
    best = candidate;
    best_distance = distance;
  }
  return best;
}

}  // namespace longwire::config
