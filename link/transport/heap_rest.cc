#include "link/transport/heap_rest.h"

#include <malloc.h>

#include <atomic>

namespace longwire::transport {
namespace {

std::atomic<int> users{0};

}  // namespace

void HeapUser::Begin() {
  if (!uses_) users.fetch_add(1, std::memory_order_relaxed);
  uses_ = true;
}

void HeapUser::End() {
  if (!uses_) return;
  uses_ = false;
  if (users.fetch_sub(1, std::memory_order_relaxed) == 1) malloc_trim(0);
}

}  // namespace longwire::transport
