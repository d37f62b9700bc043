// Writing a configuration, and the commented default file.
#include <gtest/gtest.h>

#include <sstream>

#include "server/config/config.h"
#include "tests/config/reading.h"

namespace longwire::config {
namespace {

// The file with every key said: the first # of each line goes, unless the line is for reading.
std::string Uncommented(const std::string& text) {
  std::istringstream lines(text);
  std::string out;
  for (std::string line; std::getline(lines, line);) {
    bool remark = line.starts_with("# ") && !line.starts_with("#  ");
    out += (remark || line.empty() ? line : line.substr(1)) + "\n";
  }
  return out;
}

constexpr char kEffective[] = R"(listen:
  - "[::1]:7411"
local_socket: /run/test/door
insecure_listen_anywhere: false
driver: auto
warden: /run/test/warden
warm_workers: 1
software_device:
  count: 1
placement: least_loaded
scheduler:
  policy: strict_priority
  turn: 10ms
  longest_wait: 100ms
  enabled: true
  short_time_slice: true
  awake_cores: 4
tenants:
  - name: a
    identities:
      - "Grace Hopper"
    priority: best_effort
    weight: 1
    memory: 1536MiB
    devices: 1
    bytes_in_flight: 256MiB
    admin: false
    pinned_memory: 16GiB
    modules: 65536
    awake: 0s
    wait: 0s
    monitor: false
max_sessions: 256
resume_grace: 90s
log_level: info
module_cache:
  directory: none
  size: 8GiB
  compiled: none
  tenant_images: 4096
memory:
  pooled: 16GiB
  session_idle: 1GiB
  session_idle_time: 10s
  swap_host_memory: 0
  prepared: 1GiB
compression: true
admission:
  opening_time: 10s
  openings_at_once: 256
  waiting_of_identity: 64
  waiting_of_address: 256
  waiting: 1024
  waiting_memory: 64MiB
  log_lines_per_second: 10
admin_group: longwire-admin
walls: separate
workers:
  first_uid: 1900000000
  system_calls: enforce
  host_memory: 64GiB
  processes: 4096
  fixed_addresses: false
usage:
  file: none
  size: 64MiB
metrics_per_session: false
watch_group: longwire-web
checkpoint_dir: none
checkpoint_grace: 24h
checkpoint_own_sessions: 0
checkpoint_own_bytes: 64GiB
kernel_statistics: none
kernel_history: none
rebalance: false
)";

TEST(WriterTest, EffectiveValuesWithTheirUnits) {
  EXPECT_EQ(Write(Good("tenants: [{name: a, identities: [\"Grace Hopper\"], memory: 1536MiB}]\n"
                       "resume_grace: 90s\nlisten: \"[::1]:7411\"\n")),
            kEffective);
}

TEST(WriterTest, WhatIsWrittenReadsAsTheSame) {
  const char* tenants =
      "tenants: [{name: \"null\", identities: [\"~\", \"a: b\", \"# c\", \"\\\"q\\\\\", '- x', "
      "\"\u00e9t\u00e9\", '1.5', 'true', '@a', 'a:']}]";
  const char* texts[] = {
      "",
      tenants,
      "devices: [{device: 3}, {device: 0, warm_workers: 64}]\nresume_grace: 0\n",
      "tls: {certificate: \"/a b\", key: '/k#', authority: /a}\nlisten: [0.0.0.0:1, a:0]\n",
      "software_device: {count: 3, memory: 6MiB}\nscheduler: {turn: 101us, longest_wait: 1ms}\n",
  };
  for (const char* text : texts) {
    Config config = Good(text);
    EXPECT_EQ(Good(Write(config)).SerializeAsString(), config.SerializeAsString()) << Write(config);
  }
}

TEST(WriterTest, NothingSaidIsNothingWritten) { EXPECT_EQ(Write(Config()), ""); }

TEST(DefaultFileTest, TheCommittedFileIsCurrent) {
  EXPECT_EQ(FileText(DEFAULT_FILE), DefaultFile()) << "run: ninja update_default_config";
}

TEST(DefaultFileTest, AsItIsItGivesTheDefaults) {
  EXPECT_EQ(Good(FileText(DEFAULT_FILE)).SerializeAsString(), Good("").SerializeAsString());
}

TEST(DefaultFileTest, WithEveryKeySaidItGivesTheDefaultsAndTheExamples) {
  Config config = Good(Uncommented(FileText(DEFAULT_FILE)));
  Config defaults = Good("");
  EXPECT_EQ(config.tls().key(), "/etc/longwire/server.key");
  ASSERT_EQ(config.devices_size(), 1);
  EXPECT_EQ(config.devices(0).warm_workers(), 2u);
  ASSERT_EQ(config.tenants_size(), 1);
  EXPECT_EQ(config.tenants(0).name(), "research");
  EXPECT_EQ(config.tenants(0).identities_size(), 2);
  EXPECT_EQ(config.tenants(0).bytes_in_flight(), 256u << 20);
  EXPECT_EQ(config.tenants(0).pinned_memory(), uint64_t{16} << 30);
  EXPECT_EQ(config.local_socket(), "/run/longwire/door");
  EXPECT_EQ(config.metrics(), "127.0.0.1:7412");
  EXPECT_EQ(config.metrics_tls(), "0.0.0.0:7414");
  EXPECT_EQ(config.checkpoint_dir(), "/var/lib/longwire/checkpoints");
  EXPECT_EQ(config.checkpoint_key(), "/etc/longwire/checkpoint.key");
  EXPECT_EQ(config.moves_from(0), "gpu1.example.org");
  EXPECT_EQ(config.pool().etcd(0), "etcd1.example.org:2379");
  // Without the examples it is the defaults.
  for (auto* message : {&config, &defaults}) {
    message->clear_tls();
    message->clear_devices();
    message->clear_tenants();
    message->clear_local_socket();
    message->clear_warden();
    message->clear_metrics();
    message->clear_metrics_tls();
    message->clear_checkpoint_dir();
    message->clear_checkpoint_key();
    message->clear_moves_from();
    message->clear_kernel_history();
    message->mutable_software_device()->clear_memory();
    message->mutable_module_cache()->clear_directory();
    message->mutable_module_cache()->clear_compiled();
    message->mutable_module_cache()->clear_tenant_size();
    message->mutable_usage()->clear_file();
    message->clear_pool();
    message->clear_rules();
    message->clear_policies();
    message->mutable_admission()->clear_openings_per_second();
    message->mutable_admission()->clear_sessions_of_identity();
  }
  EXPECT_EQ(config.SerializeAsString(), defaults.SerializeAsString());
}

}  // namespace
}  // namespace longwire::config
