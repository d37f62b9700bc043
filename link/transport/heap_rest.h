// Memory that gRPC's messages have freed stays with the allocator, so that the next messages get it
// quickly (PrepareProcess). It is returned to the system when all connections of the process that
// moved much are idle or have ended.
#pragma once

namespace longwire::transport {

class HeapUser {
 public:
  HeapUser() = default;
  ~HeapUser() { End(); }
  HeapUser(const HeapUser&) = delete;
  HeapUser& operator=(const HeapUser&) = delete;

  // This connection has moved much and may move more.
  void Begin();
  void End();

 private:
  bool uses_ = false;
};

}  // namespace longwire::transport
