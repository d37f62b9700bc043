// Guards are checks that protect. tests/proof turns each one off, to prove that a test notices.
// They are named in LONGWIRE_DISABLE beside switches (wire/switches.h); a process that runs without
// a guard prints a warning to its standard error. Only test builds can turn guards off: all shipped
// builds have LONGWIRE_GUARD_SWITCHES 0, and their guards are always on.
#pragma once

#include <span>
#include <string_view>

#include "longwire/guard_switches.h"

namespace longwire::wire {

#if LONGWIRE_GUARD_SWITCHES

// Sorted: the name, what the guard prevents, and the file of the check.
inline constexpr std::string_view kGuards[] = {
    "admin",        // administration by those who may not: server/daemon/admin.cc
    "answers",      // answers to calls that await none: client-shim/session/receiver.cc
    "arrivals",     // bytes that come twice or unasked: client-shim/session/transfers.cc
    "authority",    // secrets for other authorities: link/certificates/signer_client.cc
    "awake_cores",  // more spinning than the host's owner allows: daemon/sharing/awake_cores.cc
    "between",  // work between a copy and the free behind it: client-shim/session/deferred_call.cc
    "border_states",   // a flag before its message, at borders: client-shim/mirror/border_states.cc
    "bounds",          // a frame larger than a batch: link/transport/relay_end.cc
    "bridge_expiry",   // a ticket that is too old: server/daemon/bridges/rights.cc
    "bridge_session",  // a ticket of another session: server/daemon/bridges/rights.cc
    "captured",        // work past the gates, as if it were captured: worker/issue/issuer.cc
    "certificate",     // clients without a valid certificate: daemon/settings/server_credentials.cc
    "charges",         // memory that the driver allocates: server/keeper/charges.cc
    "compile_tenant",  // kernels compiled for another tenant: server/warden/compile_cache.cc
    "config_checks",   // settings that do not fit together: server/config/checks.cc
    "config_depth",    // lists within lists without end: server/config/yaml_tree.cc
    "context_turns",   // kernels of two contexts at once: softgpu/engine/run/turns.cc
    "copies_first",    // a word before the bytes of a copy: client-shim/mirror/live_exchange.cc
    "dedupe",          // bytes of the log that came already: link/transport/relay_end.cc
    "deny",            // calls that a rule of the operator denies: server/rules/decide.cc
    "early_work",      // work before what the program knows: client-shim/stream/early_copies.cc
    "epoch",           // frames of an older connection: link/transport/relay_end.cc
    "handles",         // ids that the session does not have: worker/calls/call_context.cc
    "held_first",      // requests before what is held is known: server/keeper/reattaching.cc
    "held_pages",      // a state that is seen in part: client-shim/mirror/held_pages.cc
    "held_shares",     // tokens for chunks that others have: server/keeper/adopting.cc
    "host_memory",     // host memory without end: server/worker/support/host_memory.cc
    "host_segment",    // a copy outside a session's pinned memory: worker/transfer/host_segment.cc
    "identity",        // another identity that has a session's token: daemon/sessions/session.cc
    "image_digest",    // an image that is not what it was: server/images/image_files.cc
    "image_limits",    // images without end: server/images/image_store.cc
    "image_owner",     // a tenant that asks for another's image: server/images/image_store.cc
    "info_own",        // figures of free memory behind a session's own: keeper/reclaiming.cc
    "info_page",       // a page that others can write: server/protocol/info_page.cc
    "invitation",      // a second use, a wrong secret: server/signer/invitations.cc
    "keeper_slices",   // a keeper that works for one session: server/keeper/chunk_sharing.cc
    "late_copies",     // work before a copy that was seen done: client-shim/stream/early_copies.cc
    "late_writes",     // old bytes of what a program wrote: client-shim/copy/speculative_uploads.cc
    "lent",            // the return of chunks that another one holds: server/keeper/chunk_pool.cc
    "loads_wait",      // loads that hold up what a kernel waits for: worker/issue/deferred_loads.cc
    "move_joins",      // a second connection of another server: daemon/moving/content_feed.cc
    "moved_answers",   // a session in a worker that answers otherwise: worker/support/journal.cc
    "moves_from",      // sessions of servers that nobody named: server/daemon/hand_over_call.cc
    "moves_identity",  // sessions for identities without proof: server/daemon/hand_over_call.cc
    "moves_place",     // sessions without a place of their own: server/daemon/pool/places.cc
    "one_word",        // words that are seen one by one: wire/live/changed_word.cc
    "opening_rate",    // sessions that are opened too fast: server/admission/openings.cc
    "own_fills",       // a copy into another session's memory: server/keeper/chunk_swapping.cc
    "peer",            // programs of other users at a local socket: wire/socket.cc
    "piece_digests",   // changed pieces of a suspended session: checkpoints/checkpoint_file.cc
    "policy_answer",   // a policy whose answers are nonsense: policy/program.cc
    "policy_time",     // a policy that takes the daemon's time: policy/program.cc
    "promises",        // memory that was promised to another session: server/keeper/promises.cc
    "quota",           // more memory than a tenant may have: server/keeper/main.cc
    "quota_bytes",     // more bytes in flight than a tenant may have: worker/transfer/in_flight.h
    "quota_sessions",  // more sessions than a tenant may have: daemon/sessions/session_table.cc
    "range_check",     // a kernel's access outside of device memory: softgpu/engine/memory/arena.cc
    "removal",         // sessions whose right has ended: server/daemon/access/removals.cc
    "resources",       // parts of a device that were not given: worker/process/given_resources.cc
    "revocation",      // a certificate that was taken back: server/daemon/access/revocations.cc
    "revoked",         // renewal of a revoked certificate: server/signer/revocations.cc
    "scrub",           // another session's bytes in leased memory: server/keeper/main.cc
    "second_look",     // a word without what was written before it: wire/live/changed_word.cc
    "set_answers",     // a graph whose change was refused: worker/graph/exec_changes.cc
    "shared_tenant",   // another tenant's shared memory: server/keeper/chunk_sharing.cc
    "shared_tokens",   // tokens without end: server/keeper/sharing/shared_chunks.cc
    "sizes",           // a copy's bytes outside its announced range: worker/transfer/transfers.cc
    "start_only",      // a reload that changes what needs a restart: server/config/reload.cc
    "state_copies",    // a state of two times: client-shim/mirror/program_state.cc
    "state_turn",      // states that are seen in part: worker/states/state_turns.cc
    "token",           // clients that resume a session of others: server/daemon/settings/token.cc
    "unordered",       // writes to a remap copy's source: client-shim/copy/remap_copies.cc
    "upload_end",      // reads behind the end of their copy: session/offered_uploads.cc
    "waiting",         // one party that takes all room: server/admission/capacity.cc
    "waits_across",  // work before what another server has done: client-shim/stream/waits_across.cc
    "watchdog",      // a daemon that no longer answers: server/daemon/notify.cc
    "windows",       // device memory where the client offers none: connect/check_reply.cc
};

// True if LONGWIRE_DISABLE names the guard. Code on a hot path keeps the result in a constant.
bool GuardIsOff(std::string_view guard);

#else

inline constexpr std::span<const std::string_view> kGuards;
constexpr bool GuardIsOff(std::string_view) { return false; }

#endif

// True only in the variants of fuzz targets that tests/fuzz builds with a planted bug: the check
// that uses it is then left out, and the fuzzer must find that within a minute.
#ifdef LONGWIRE_PLANTED_BUG
constexpr bool kPlantedBug = true;
#else
constexpr bool kPlantedBug = false;
#endif

}  // namespace longwire::wire
