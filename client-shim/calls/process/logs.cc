// The log of errors, as programs read it.
#include <algorithm>
#include <cstdio>
#include <cstring>
#include <string>

#include "client-shim/entry/error_log.h"
#include "longwire/shim_hand_written.h"
#include "wire/descriptors.h"

namespace longwire::shim::hand {

CUresult cuLogsRegisterCallback(CUlogsCallback callbackFunc, void* userData,
                                CUlogsCallbackHandle* callback_out) {
  return AddLogCallback(callbackFunc, userData, callback_out);
}

CUresult cuLogsUnregisterCallback(CUlogsCallbackHandle callback) {
  return RemoveLogCallback(callback);
}

CUresult cuLogsCurrent(CUlogIterator* iterator_out, unsigned int) {
  *iterator_out = NextLogMessage();
  return CUDA_SUCCESS;
}

CUresult cuLogsDumpToFile(CUlogIterator* iterator, const char* pathToFile, unsigned int flags) {
  if (flags != 0) return CUDA_ERROR_INVALID_VALUE;
  std::FILE* file = wire::OpenStream(pathToFile, "w");
  if (file == nullptr) return CUDA_ERROR_INVALID_VALUE;
  std::string text = CollectLog(iterator);
  bool written = std::fwrite(text.data(), 1, text.size(), file) == text.size();
  bool closed = std::fclose(file) == 0;
  return written && closed ? CUDA_SUCCESS : CUDA_ERROR_OPERATING_SYSTEM;
}

CUresult cuLogsDumpToMemory(CUlogIterator* iterator, char* buffer, size_t* size,
                            unsigned int flags) {
  if (flags != 0) return CUDA_ERROR_INVALID_VALUE;
  if (*size == 0) return CUDA_ERROR_INVALID_VALUE;
  std::string text = CollectLog(iterator);
  text.resize(std::min(text.size(), *size - 1));  // as natively: cut where the room ends
  *size = text.size();
  std::memcpy(buffer, text.c_str(), text.size() + 1);
  return CUDA_SUCCESS;
}

}  // namespace longwire::shim::hand
