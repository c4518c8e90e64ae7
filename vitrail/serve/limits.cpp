// SPDX-License-Identifier: Apache-2.0
#include "vitrail/serve/limits.h"

#include <algorithm>

#include "vitrail/base/error.h"
#include "vitrail/base/fields.h"
#include "vitrail/base/text.h"
#include "vitrail/image/decode_memory.h"

namespace vitrail::serve {

void describe_limits(Fields& f, Limits& l) {
  constexpr int64_t kMaxCount = int64_t{1} << 40;  // a terabyte
  constexpr Range kSeconds{1e-3, 1e6};
  f.integer("header_bytes", l.header_bytes, 1, kMaxCount);
  f.integer("headers", l.headers, 1, kMaxCount);
  f.integer("body_bytes", l.body_bytes, 1, kMaxCount);
  f.integer("chunks", l.chunks, 1, kMaxCount);
  f.integer("json_depth", l.json_depth, 1, kMaxCount);
  f.integer("images", l.images, 1, kMaxCount);
  f.integer("outputs", l.outputs, 1, kMaxCount);
  f.integer("pixels", l.pixels, 1, kMaxCount);
  f.integer("connections", l.connections, 1, kMaxCount);
  f.integer("requests", l.requests, 1, kMaxCount);
  f.integer("buffered_bytes", l.buffered_bytes, 1, kMaxCount);
  f.number("header_seconds", l.header_seconds, kSeconds);
  f.number("body_grace_seconds", l.body_grace_seconds, kSeconds);
  f.number("body_bytes_per_second", l.body_bytes_per_second, kSeconds);
  f.number("idle_seconds", l.idle_seconds, kSeconds);
  f.number("request_seconds", l.request_seconds, kSeconds);
  f.number("exit_seconds", l.exit_seconds, kSeconds);
  f.integer("embedding_bytes", l.embedding_bytes, 1, kMaxCount);
}

Limits limits_within(int64_t memory) {
  Limits limits;
  limits.buffered_bytes = std::min(limits.buffered_bytes, static_cast<size_t>(memory / 4));
  limits.embedding_bytes = std::min(limits.embedding_bytes, static_cast<size_t>(memory / 16));
  limits.pixels = std::min(limits.pixels, memory / 2 / image::kDecodeBytesPerPixel);
  return limits;
}

void set_limit(Limits& limits, const std::string& name, const std::string& value) {
  if (set_field(describe_limits, limits, name, {value})) return;
  std::vector<std::string> names;
  for (const FieldRow& row : rows_of(describe_limits)) names.push_back(row.option);
  std::ranges::sort(names);
  throw Error("--limit", "one of " + join(names), "'" + name + "'");
}

}  // namespace vitrail::serve
