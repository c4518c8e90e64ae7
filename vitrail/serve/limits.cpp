// SPDX-License-Identifier: Apache-2.0
#include "vitrail/serve/limits.h"

#include <algorithm>
#include <limits>
#include <map>
#include <variant>

#include "vitrail/base/error.h"
#include "vitrail/base/text.h"
#include "vitrail/serve/request_options_internal.h"

namespace vitrail::serve {
namespace {

using Field = std::variant<size_t Limits::*, int64_t Limits::*, uint32_t Limits::*, int Limits::*, double Limits::*>;

const std::map<std::string, Field>& fields() {
  static const std::map<std::string, Field> table{{"header-bytes", &Limits::header_bytes},
                                                  {"headers", &Limits::headers},
                                                  {"body-bytes", &Limits::body_bytes},
                                                  {"chunks", &Limits::chunks},
                                                  {"json-depth", &Limits::json_depth},
                                                  {"images", &Limits::images},
                                                  {"outputs", &Limits::outputs},
                                                  {"pixels", &Limits::pixels},
                                                  {"connections", &Limits::connections},
                                                  {"requests", &Limits::requests},
                                                  {"buffered-bytes", &Limits::buffered_bytes},
                                                  {"header-seconds", &Limits::header_seconds},
                                                  {"body-grace-seconds", &Limits::body_grace_seconds},
                                                  {"body-bytes-per-second", &Limits::body_bytes_per_second},
                                                  {"idle-seconds", &Limits::idle_seconds},
                                                  {"request-seconds", &Limits::request_seconds},
                                                  {"exit-seconds", &Limits::exit_seconds},
                                                  {"embedding-bytes", &Limits::embedding_bytes}};
  return table;
}

constexpr int64_t kMaxCount = int64_t{1} << 40;  // a terabyte
constexpr double kMaxSeconds = 1e6, kMinSeconds = 1e-3;

}  // namespace

void set_limit(Limits& limits, const std::string& name, const std::string& value) {
  const auto found = fields().find(name);
  if (found == fields().end()) {
    const auto name_of = [](const auto& known) { return known.first; };
    throw Error("--limit", "one of " + join(fields(), ", ", name_of), "'" + name + "'");
  }
  RequestOptions options;  // parses numbers
  options.add(name, value);
  std::visit(
      [&](auto field) {
        using Value = std::remove_reference_t<decltype(limits.*field)>;
        if constexpr (std::is_same_v<Value, double>) {
          limits.*field = options.number(name, 0, kMinSeconds, kMaxSeconds);
        } else {
          constexpr auto max = std::min<uint64_t>(kMaxCount, std::numeric_limits<Value>::max());
          limits.*field = static_cast<Value>(options.integer(name, 0, 1, static_cast<int64_t>(max)));
        }
      },
      found->second);
}

}  // namespace vitrail::serve
