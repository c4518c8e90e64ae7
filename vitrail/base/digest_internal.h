// SPDX-License-Identifier: Apache-2.0
#pragma once
// SHA-256 and SHA-1 (FIPS 180-4).
#include <cstddef>
#include <memory>
#include <span>
#include <string>

namespace vitrail {

// The digest of bytes that arrive in pieces.
class Digest {
 public:
  virtual ~Digest() = default;
  virtual void update(const void* data, size_t size) = 0;
  virtual std::string hex() = 0;  // in lower-case hexadecimal digits; ends the digest
};

std::unique_ptr<Digest> make_sha256();
std::unique_ptr<Digest> make_sha1();

std::string sha256(std::span<const std::byte> data);

}  // namespace vitrail
