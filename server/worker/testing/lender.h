// A keeper that lends whatever is asked for, for sessions on the fake driver.
#pragma once

#include <sys/eventfd.h>

#include <algorithm>
#include <atomic>
#include <memory>
#include <thread>

#include "server/protocol/hello.h"
#include "server/worker/testing/test_session.h"

namespace longwire::worker::testing {

// Lends whatever is asked for.
class Lender {
 public:
  explicit Lender(Device& device) {
    wire::Descriptor theirs;
    EXPECT_TRUE(wire::LocalPair(&socket_, &theirs));
    device.keeper = std::make_unique<KeeperClient>(theirs.Release());
    thread_ = std::thread([this] { Serve(); });
  }
  // After the session, which has the other end.
  ~Lender() { thread_.join(); }

  std::atomic<size_t> returned{0};   // chunks
  std::atomic<size_t> under_way{0};  // of the largest lease
  std::atomic<bool> lets_go{false};  // of memory that it keeps, for a charge
  std::atomic<uint64_t> charged{0};  // bytes
  std::atomic<int> fill_code{0};     // of chunks from another device
  std::atomic<size_t> fills{0};

 private:
  void Serve() {
    while (auto packet = wire::ReceiveMessage(socket_.get(), std::chrono::milliseconds(-1))) {
      keeper::Lease lease;
      keeper::Return back;
      keeper::Charge charge;
      keeper::Uncharge over;
      keeper::Borrow hello;
      keeper::Show show;
      keeper::Fill fill;
      if (message::Unpack(packet->bytes, &back) == wire::WireResult::kOk) {
        returned += back.chunks.size();
      } else if (message::Unpack(packet->bytes, &charge) == wire::WireResult::kOk) {
        Charge(charge);
      } else if (message::Unpack(packet->bytes, &hello) == wire::WireResult::kOk) {
        wire::SendMessage(socket_.get(), message::Pack(message::Hello{}));
      } else if (message::Unpack(packet->bytes, &show) == wire::WireResult::kOk) {
        Grant(show.request, false, {show.chunk, 0});
      } else if (message::Unpack(packet->bytes, &fill) == wire::WireResult::kOk) {
        fills += packet->descriptors.size();
        wire::SendMessage(socket_.get(), message::Pack(keeper::Filled{fill.request, fill_code}));
      } else if (message::Unpack(packet->bytes, &over) == wire::WireResult::kOk) {
        charged -= over.bytes;
      } else if (message::Unpack(packet->bytes, &lease) == wire::WireResult::kOk) {
        Lend(lease);
      }
    }
  }
  void Charge(const keeper::Charge& charge) {
    if (!lets_go) {
      wire::SendMessage(socket_.get(),
                        message::Pack(keeper::Refuse{charge.request, 2, "all is lent", 0}));
      return;
    }
    charged += charge.bytes;
    FakeDriver::Get().maps_fail = false;
    wire::SendMessage(socket_.get(), message::Pack(keeper::Charged{charge.request, charge.bytes}));
  }
  void Lend(const keeper::Lease& lease) {
    under_way = std::max<size_t>(under_way, lease.bytes.size());
    for (size_t i = 0; i < lease.bytes.size(); ++i) {
      Grant(lease.request, i + 1 < lease.bytes.size(), {++next_, lease.bytes[i]});
    }
  }
  void Grant(uint64_t request, bool more, keeper::GrantedChunk chunk) {
    wire::Descriptor memory(eventfd(0, EFD_CLOEXEC));
    const int files[] = {memory.get()};
    EXPECT_TRUE(wire::SendMessage(socket_.get(),
                                  message::Pack(keeper::Grant{request, more, {chunk}}), files));
  }

  wire::Descriptor socket_;
  uint64_t next_ = 0;
  std::thread thread_;
};

}  // namespace longwire::worker::testing
