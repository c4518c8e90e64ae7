// SPDX-License-Identifier: Apache-2.0
#include "vitrail/base/call_limit.h"
#include "vitrail/c_api/handles_internal.h"

namespace vitrail::c_api {
namespace {

// The limits of the calling thread.
thread_local std::optional<CallLimit> deadline, flag;

void set_limit(const vitrail_call_limit* given) {
  const vitrail_call_limit limit = options_or(given, VITRAIL_CALL_LIMIT_INIT, "vitrail_call_limit");
  constexpr int64_t kMaxMilliseconds = int64_t{1} << 40;  // 35 years, so that no sum overflows
  if (limit.timeout_ms < 0 || limit.timeout_ms > kMaxMilliseconds) {
    throw Error("timeout_ms", str("0 to ", kMaxMilliseconds), str(limit.timeout_ms));
  }
  flag.reset();  // limits end in the reverse order
  deadline.reset();
  if (limit.timeout_ms > 0)
    deadline.emplace(std::chrono::steady_clock::now() + std::chrono::milliseconds(limit.timeout_ms));
  if (limit.cancelled) flag.emplace([=] { return limit.cancelled(limit.context) != 0; });
}

}  // namespace
}  // namespace vitrail::c_api

extern "C" vitrail_status* vitrail_set_call_limit(const vitrail_call_limit* limit) {
  return vitrail::c_api::guarded([&] { vitrail::c_api::set_limit(limit); });
}
