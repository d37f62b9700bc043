// Replies of a daemon with many devices and sessions, for tests.
#pragma once

#include <string>

#include "proto/transport.pb.h"

namespace longwire::web {

class Crowd {
 public:
  // The first session's number is `first` + 1.
  Crowd(int devices, int sessions, uint64_t first = 0)
      : devices_(devices), sessions_(sessions), first_(first) {}

  // As it is in that second: memory, times and gates are others each time.
  transport::InspectReply Reply(int second) const {
    transport::InspectReply reply;
    reply.mutable_daemon()->set_pid(7);
    reply.mutable_daemon()->set_version("1.2.3");
    reply.mutable_daemon()->set_host("gpu1.example.org");
    reply.mutable_daemon()->set_uptime_seconds(1000 + second);
    for (int i = 0; i < devices_; ++i) AddDevice(i, second, &reply);
    for (int i = 0; i < sessions_; ++i) AddSession(i, second, &reply);
    for (const transport::Session& session : reply.sessions()) {
      const transport::SessionMemory& memory = session.memory(0);
      transport::Device* device = reply.mutable_devices(memory.device());
      device->set_leased(device->leased() + memory.leased());
      device->set_sessions(device->sessions() + 1);
    }
    for (transport::Device& device : *reply.mutable_devices()) {
      if (device.sessions() == 0) device.set_busy(0);
    }
    return reply;
  }

  // A pool of two hosts, one of them drained, and who waits for a place: tenants 0 to 4.
  static void AddPool(transport::InspectReply* reply) {
    transport::PoolFigures& pool = *reply->mutable_pool();
    pool.set_host("gpu1");
    pool.set_joined(true);
    pool.set_placer("gpu2");
    for (const char* name : {"gpu1", "gpu2"}) {
      transport::PoolHost& host = *pool.add_hosts();
      host.set_name(name);
      host.set_joined(true);
      host.set_version("1.2.3");
      host.set_sessions(3);
      host.set_sessions_limit(16);
      transport::PoolDevice& device = *host.add_devices();
      device.set_name("NVIDIA H200 NVL");
      device.set_total(kTotal);
      device.set_promised(kTotal / 4);
      device.set_busy(0.5);
    }
    transport::PoolHost& drained = *pool.mutable_hosts(1);
    drained.set_cordoned(true);
    drained.mutable_withdrawn()->set_drain(true);
    drained.mutable_withdrawn()->set_by("operator@example.org");
    for (uint32_t i = 0; i < 5; ++i) {
      transport::PoolWaiter& waiter = *pool.add_waiting();
      waiter.set_place(5 - i);
      waiter.set_tenant("tenant-" + std::to_string(i));
      waiter.set_identity("user-" + std::to_string(i) + "@example.org");
      waiter.set_program("/home/user/train-" + std::to_string(i));
      waiter.set_devices(2);
      waiter.set_waited(100);
      waiter.set_reason("gpu1: 512 MiB are missing");
    }
  }

 private:
  static constexpr uint64_t kTotal = 80ULL << 30;

  static void AddDevice(int i, int second, transport::InspectReply* reply) {
    transport::Device* device = reply->add_devices();
    device->set_ordinal(i);
    device->set_name("NVIDIA H200 NVL");
    device->set_total(kTotal);
    device->set_idle(3ULL << 30);
    device->set_busy((second / 4 * 7 + i * 3) % 10 / 10.0);
  }

  void AddSession(int i, int second, transport::InspectReply* reply) const {
    transport::Session* session = reply->add_sessions();
    const int device = i % devices_;
    session->set_id(first_ + 1 + static_cast<uint64_t>(i));
    session->set_program("/home/user/project/.venv/bin/python3.11-" + std::to_string(i));
    session->set_client_host("workstation-" + std::to_string(i) + ".example.org");
    session->set_identity("user-" + std::to_string(i) + "@example.org");
    session->set_tenant("tenant-" + std::to_string(i % 10));
    session->set_seconds(second);
    session->set_bytes_up(static_cast<uint64_t>(second) * 1'000'000);
    session->set_calls(static_cast<uint64_t>(second) * 1000);
    session->set_round_trips(static_cast<uint64_t>(second) * 10);
    transport::SessionMemory* memory = session->add_memory();
    memory->set_device(device);
    memory->set_leased(static_cast<uint64_t>(1 + (second / 8 + 7 * i) % 16) << 28);
    session->set_leased(memory->leased());
    transport::Seat* seat = session->add_seats();
    seat->set_device(device);
    seat->set_busy(true);
    seat->set_closed((second + i) % 3 == 0);
    seat->set_gpu_seconds(second * 0.1);
  }

  const int devices_, sessions_;
  const uint64_t first_;
};

}  // namespace longwire::web
