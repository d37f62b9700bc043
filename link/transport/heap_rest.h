// Memory that gRPC's messages took and gave back stays with the allocator, so that the next ones
// are quick (PrepareProcess). It goes back to the system when the last connection of the process
// that moved much has come to rest, or has ended.
#pragma once

namespace longwire::transport {

class HeapUser {
 public:
  HeapUser() = default;
  ~HeapUser() { End(); }
  HeapUser(const HeapUser&) = delete;
  HeapUser& operator=(const HeapUser&) = delete;

  // This connection has moved much, and may go on.
  void Begin();
  void End();

 private:
  bool uses_ = false;
};

}  // namespace longwire::transport
