// SPDX-License-Identifier: Apache-2.0
#pragma once
// SHA-256 and SHA-1 (FIPS 180-4).  The hub names the files of a repository by them.
#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>

namespace vitrail::hub {

// The digest of bytes that arrive in pieces.
class Digest {
 public:
  virtual ~Digest() = default;
  virtual void update(const void* data, size_t size) = 0;
  virtual std::string hex() = 0;  // ends the digest
};

std::unique_ptr<Digest> make_sha256();
std::unique_ptr<Digest> make_sha1();

// The digest that gives a blob's name: SHA-256 for 64 digits (a file in large file storage), the SHA-1 of git's header
// and the content for 40.
std::unique_ptr<Digest> digest_of_blob(const std::string& name, int64_t size);

// Whether the text is a hexadecimal number of `digits` lower-case digits.
bool is_hex(const std::string& text, size_t digits);

}  // namespace vitrail::hub
