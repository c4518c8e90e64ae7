// SPDX-License-Identifier: Apache-2.0
#include "vitrail/base/digest_internal.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cstdint>
#include <cstring>

namespace vitrail {
namespace {

constexpr size_t kBlockBytes = 64;

uint32_t big_endian(const uint8_t* bytes) {
  return uint32_t{bytes[0]} << 24 | uint32_t{bytes[1]} << 16 | uint32_t{bytes[2]} << 8 | bytes[3];
}

// The padding to blocks of 64 bytes that both functions share.  Words: of the state.
template <size_t Words>
class BlockDigest : public Digest {
 public:
  explicit BlockDigest(const std::array<uint32_t, Words>& initial) : state_(initial) {}

  void update(const void* data, size_t size) override {
    const auto* bytes = static_cast<const uint8_t*>(data);
    total_ += size;
    while (size > 0) {
      if (filled_ == 0 && size >= kBlockBytes) {  // without a copy
        add_block(bytes, state_);
        bytes += kBlockBytes;
        size -= kBlockBytes;
        continue;
      }
      const size_t taken = std::min(size, kBlockBytes - filled_);
      std::memcpy(block_.data() + filled_, bytes, taken);
      bytes += taken;
      size -= taken;
      filled_ = (filled_ + taken) % kBlockBytes;
      if (filled_ == 0) add_block(block_.data(), state_);
    }
  }

  std::string hex() override {
    const uint64_t bits = total_ * 8;
    const uint8_t one = 0x80, zero = 0;
    update(&one, 1);
    while (filled_ != kBlockBytes - 8) update(&zero, 1);
    std::array<uint8_t, 8> length{};
    for (size_t i = 0; i < 8; ++i) length[i] = static_cast<uint8_t>(bits >> (56 - 8 * i));
    update(length.data(), length.size());
    std::string text;
    for (const uint32_t word : state_) {
      for (int shift = 28; shift >= 0; shift -= 4) text += "0123456789abcdef"[word >> shift & 15];
    }
    return text;
  }

 protected:
  virtual void add_block(const uint8_t* block, std::array<uint32_t, Words>& state) = 0;

 private:
  std::array<uint32_t, Words> state_;
  std::array<uint8_t, kBlockBytes> block_{};
  size_t filled_ = 0;
  uint64_t total_ = 0;
};

constexpr std::array<uint32_t, 64> kRoundConstants = {
    0x428a2f98, 0x71374491, 0xb5c0fbcf, 0xe9b5dba5, 0x3956c25b, 0x59f111f1, 0x923f82a4, 0xab1c5ed5,
    0xd807aa98, 0x12835b01, 0x243185be, 0x550c7dc3, 0x72be5d74, 0x80deb1fe, 0x9bdc06a7, 0xc19bf174,
    0xe49b69c1, 0xefbe4786, 0x0fc19dc6, 0x240ca1cc, 0x2de92c6f, 0x4a7484aa, 0x5cb0a9dc, 0x76f988da,
    0x983e5152, 0xa831c66d, 0xb00327c8, 0xbf597fc7, 0xc6e00bf3, 0xd5a79147, 0x06ca6351, 0x14292967,
    0x27b70a85, 0x2e1b2138, 0x4d2c6dfc, 0x53380d13, 0x650a7354, 0x766a0abb, 0x81c2c92e, 0x92722c85,
    0xa2bfe8a1, 0xa81a664b, 0xc24b8b70, 0xc76c51a3, 0xd192e819, 0xd6990624, 0xf40e3585, 0x106aa070,
    0x19a4c116, 0x1e376c08, 0x2748774c, 0x34b0bcb5, 0x391c0cb3, 0x4ed8aa4a, 0x5b9cca4f, 0x682e6ff3,
    0x748f82ee, 0x78a5636f, 0x84c87814, 0x8cc70208, 0x90befffa, 0xa4506ceb, 0xbef9a3f7, 0xc67178f2};

class Sha256 final : public BlockDigest<8> {
 public:
  Sha256()
      : BlockDigest({0x6a09e667, 0xbb67ae85, 0x3c6ef372, 0xa54ff53a, 0x510e527f, 0x9b05688c, 0x1f83d9ab, 0x5be0cd19}) {}

 private:
  void add_block(const uint8_t* block, std::array<uint32_t, 8>& state) override {
    std::array<uint32_t, 64> w{};
    for (size_t i = 0; i < 16; ++i) w[i] = big_endian(block + 4 * i);
    for (size_t i = 16; i < 64; ++i) {
      const uint32_t s0 = std::rotr(w[i - 15], 7) ^ std::rotr(w[i - 15], 18) ^ w[i - 15] >> 3;
      const uint32_t s1 = std::rotr(w[i - 2], 17) ^ std::rotr(w[i - 2], 19) ^ w[i - 2] >> 10;
      w[i] = w[i - 16] + s0 + w[i - 7] + s1;
    }
    auto [a, b, c, d, e, f, g, h] = state;
    for (size_t i = 0; i < 64; ++i) {
      const uint32_t s1 = std::rotr(e, 6) ^ std::rotr(e, 11) ^ std::rotr(e, 25);
      const uint32_t t1 = h + s1 + ((e & f) ^ (~e & g)) + kRoundConstants[i] + w[i];
      const uint32_t s0 = std::rotr(a, 2) ^ std::rotr(a, 13) ^ std::rotr(a, 22);
      const uint32_t t2 = s0 + ((a & b) ^ (a & c) ^ (b & c));
      h = g, g = f, f = e, e = d + t1, d = c, c = b, b = a, a = t1 + t2;
    }
    const std::array<uint32_t, 8> sums{a, b, c, d, e, f, g, h};
    for (size_t i = 0; i < 8; ++i) state[i] += sums[i];
  }
};

class Sha1 final : public BlockDigest<5> {
 public:
  Sha1() : BlockDigest({0x67452301, 0xefcdab89, 0x98badcfe, 0x10325476, 0xc3d2e1f0}) {}

 private:
  void add_block(const uint8_t* block, std::array<uint32_t, 5>& state) override {
    std::array<uint32_t, 80> w{};
    for (size_t i = 0; i < 16; ++i) w[i] = big_endian(block + 4 * i);
    for (size_t i = 16; i < 80; ++i) w[i] = std::rotl(w[i - 3] ^ w[i - 8] ^ w[i - 14] ^ w[i - 16], 1);
    auto [a, b, c, d, e] = state;
    for (size_t i = 0; i < 80; ++i) {
      const uint32_t parity = b ^ c ^ d, choice = (b & c) | (~b & d), majority = (b & c) | (b & d) | (c & d);
      const uint32_t mixed = i < 20   ? choice + 0x5a827999
                             : i < 40 ? parity + 0x6ed9eba1
                             : i < 60 ? majority + 0x8f1bbcdc
                                      : parity + 0xca62c1d6;
      const uint32_t next = std::rotl(a, 5) + mixed + e + w[i];
      e = d, d = c, c = std::rotl(b, 30), b = a, a = next;
    }
    const std::array<uint32_t, 5> sums{a, b, c, d, e};
    for (size_t i = 0; i < 5; ++i) state[i] += sums[i];
  }
};

}  // namespace

std::unique_ptr<Digest> make_sha256() { return std::make_unique<Sha256>(); }
std::unique_ptr<Digest> make_sha1() { return std::make_unique<Sha1>(); }

std::string sha256(std::span<const std::byte> data) {
  const auto digest = make_sha256();
  digest->update(data.data(), data.size());
  return digest->hex();
}

}  // namespace vitrail
