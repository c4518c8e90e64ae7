// SPDX-License-Identifier: Apache-2.0
#pragma once
// The limits of a server.  Each protects it from one way in which a client can exhaust memory or threads.
#include <cstddef>
#include <cstdint>
#include <string>

namespace vitrail {
class Fields;
}

namespace vitrail::serve {

struct Limits {
  uint32_t header_bytes = 16 << 10;         // request line and headers: 431
  size_t headers = 100;                     // 431
  size_t body_bytes = size_t{64} << 20;     // also of chunked and of decompressed bodies: 413
  size_t chunks = 65'536;                   // chunks of a body: 413
  int json_depth = 64;                      // 400
  size_t images = 256;                      // images of a request: 413
  size_t outputs = 64;                      // outputs that a request names: 413
  int64_t pixels = 64'000'000;              // pixels of an image: 422
  size_t connections = 1'024;               // then the longest idle one is closed; all busy: 503
  size_t requests = 512;                    // in flight: 429
  size_t buffered_bytes = size_t{1} << 30;  // all bodies in flight: 429
  double header_seconds = 10;               // until a header is complete, the first from the connection on: 408
  double body_grace_seconds = 5;            // after it, a body must arrive at the minimum rate: 408
  double body_bytes_per_second = 16 << 10;
  double idle_seconds = 60;                    // between requests of a connection, which is then closed
  double request_seconds = 30;                 // until the response: 504
  double exit_seconds = 30;                    // for responses after a request to end
  size_t embedding_bytes = size_t{256} << 20;  // kept embeddings of recent images, for Segment Anything: 64 published
};

void describe_limits(Fields& fields, Limits& limits);

// The defaults of a server that may have this many bytes of memory (base/memory_limit.h): with less than 4 GiB,
// buffered_bytes is a quarter of it, embedding_bytes a sixteenth, and pixels as many as can be decoded in half of it.
Limits limits_within(int64_t memory);

// Sets a limit by its name: "body-bytes".  Throws Error for another name, and for a value that is not a positive
// number.
void set_limit(Limits& limits, const std::string& name, const std::string& value);

}  // namespace vitrail::serve
