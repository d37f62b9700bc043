#include "client-shim/connect/visible_devices.h"

#include <algorithm>
#include <cctype>
#include <cstdlib>
#include <cstring>
#include <numeric>
#include <string>
#include <string_view>
#include <tuple>

namespace longwire::shim {
namespace {

constexpr std::string_view kUuidPrefix = "GPU-";
constexpr int kNone = -1;

int AttributeOf(const wire::DeviceDescription& device, CUdevice_attribute attribute) {
  for (const wire::DeviceAttribute& known : device.attributes) {
    if (known.attribute == static_cast<int>(attribute)) return known.value;
  }
  return 0;
}

std::vector<int> ByPciBus(const std::vector<wire::DeviceDescription>& devices) {
  std::vector<int> order(devices.size());
  std::iota(order.begin(), order.end(), 0);
  auto place = [&](int device) {
    const wire::DeviceDescription& described = devices[static_cast<size_t>(device)];
    return std::tuple(AttributeOf(described, CU_DEVICE_ATTRIBUTE_PCI_DOMAIN_ID),
                      AttributeOf(described, CU_DEVICE_ATTRIBUTE_PCI_BUS_ID),
                      AttributeOf(described, CU_DEVICE_ATTRIBUTE_PCI_DEVICE_ID));
  };
  std::stable_sort(order.begin(), order.end(), [&](int a, int b) { return place(a) < place(b); });
  return order;
}

// Blanks, a sign and digits; what follows them does not count. kNone if there are no digits.
int NumberOf(const std::string& entry) {
  char* end = nullptr;
  long number = strtol(entry.c_str(), &end, 10);
  return end == entry.c_str() ? kNone : static_cast<int>(number);
}

std::string Digits(const std::array<uint8_t, 16>& uuid) {
  constexpr const char* kDigits = "0123456789abcdef";
  std::string digits;
  for (uint8_t byte : uuid) {
    digits += kDigits[byte >> 4];
    digits += kDigits[byte & 15];
  }
  return digits;
}

// The only device whose UUID begins with the entry's digits: as many as it gives, dashes anywhere,
// nothing else among them. What follows a whole UUID does not count.
int DeviceWithUuid(const std::string& entry, const std::vector<wire::DeviceDescription>& devices) {
  if (entry.compare(0, kUuidPrefix.size(), kUuidPrefix) != 0) return kNone;
  std::string wanted;
  for (size_t i = kUuidPrefix.size(); i < entry.size() && wanted.size() < 32; ++i) {
    if (entry[i] == '-') continue;
    if (!isxdigit(static_cast<unsigned char>(entry[i]))) return kNone;
    wanted += static_cast<char>(tolower(static_cast<unsigned char>(entry[i])));
  }
  int found = kNone;
  for (size_t i = 0; i < devices.size(); ++i) {
    if (Digits(devices[i].uuid).compare(0, wanted.size(), wanted) != 0) continue;
    if (found != kNone) return kNone;
    found = static_cast<int>(i);
  }
  return wanted.empty() ? kNone : found;
}

std::vector<std::string> Entries(std::string_view list) {
  std::vector<std::string> entries;
  for (size_t comma; (comma = list.find(',')) != std::string_view::npos;) {
    entries.emplace_back(list.substr(0, comma));
    list.remove_prefix(comma + 1);
  }
  entries.emplace_back(list);
  return entries;
}

bool IsUuid(const std::string& entry) {
  return entry.compare(0, kUuidPrefix.size(), kUuidPrefix) == 0;
}

}  // namespace

VisibleDevices ChooseVisible(const char* list, const char* order,
                             const std::vector<wire::DeviceDescription>& devices) {
  VisibleDevices visible;
  bool by_bus = order != nullptr && strcmp(order, "PCI_BUS_ID") == 0;
  if (order != nullptr && *order != 0 && !by_bus && strcmp(order, "FASTEST_FIRST") != 0) {
    visible.code = CUDA_ERROR_INVALID_DEVICE;
    return visible;
  }
  // The server's own order is its driver's: the fastest first.
  std::vector<int> numbers(devices.size());
  std::iota(numbers.begin(), numbers.end(), 0);
  if (by_bus) numbers = ByPciBus(devices);
  std::vector<std::string> entries = Entries(list == nullptr ? "" : list);
  bool by_uuid = IsUuid(entries.front());
  if (list == nullptr) {
    visible.chosen = numbers;
    entries.clear();
  }
  for (const std::string& entry : entries) {
    int found = kNone;
    if (by_uuid) {
      found = DeviceWithUuid(entry, devices);
    } else if (int number = NumberOf(entry); number >= 0 && number < int(numbers.size())) {
      found = numbers[static_cast<size_t>(number)];
    }
    if (found == kNone) break;
    if (std::count(visible.chosen.begin(), visible.chosen.end(), found) != 0) {
      return {CUDA_ERROR_INVALID_DEVICE, {}};
    }
    visible.chosen.push_back(found);
  }
  if (visible.chosen.empty()) visible.code = CUDA_ERROR_NO_DEVICE;
  return visible;
}

bool SelectsNothing(const char* list) {
  if (list == nullptr) return false;
  std::string first = Entries(list).front();
  return !IsUuid(first) && NumberOf(first) < 0;
}

}  // namespace longwire::shim
