#include "nvml-shim/text.h"

#include <cstdio>
#include <cstring>

namespace longwire::nvml {

nvmlReturn_t CopyText(const std::string& text, char* to, unsigned size) {
  if (to == nullptr) return NVML_ERROR_INVALID_ARGUMENT;
  if (text.size() >= size) return NVML_ERROR_INSUFFICIENT_SIZE;
  std::memcpy(to, text.c_str(), text.size() + 1);
  return NVML_SUCCESS;
}

std::string UuidText(const unsigned char* uuid) {
  std::string text = "GPU-";
  for (int i = 0; i < 16; ++i) {
    char byte[4];
    std::snprintf(byte, sizeof(byte), "%02x", uuid[i]);
    if (i == 4 || i == 6 || i == 8 || i == 10) text += '-';
    text += byte;
  }
  return text;
}

}  // namespace longwire::nvml
