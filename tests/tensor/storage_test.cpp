// SPDX-License-Identifier: Apache-2.0
#include "vitrail/tensor/storage.h"

#include <gtest/gtest.h>

#include <array>
#include <string>
#include <vector>

namespace vitrail {
namespace {

// Records what is allocated and freed.
class CountingAllocator : public Allocator {
 public:
  void* allocate(size_t bytes) override {
    calls.push_back("allocate " + std::to_string(bytes));
    return memory.data();
  }
  void deallocate(void* data, size_t bytes) noexcept override {
    calls.push_back("deallocate " + std::to_string(bytes));
    same = data == memory.data();
  }
  alignas(64) std::array<std::byte, 256> memory{};
  std::vector<std::string> calls;
  bool same = false;
};

TEST(Storage, IsFreedOnceByItsAllocator) {
  CountingAllocator allocator;
  {
    const auto storage = Storage::allocate(100, allocator);
    EXPECT_EQ(storage->data(), allocator.memory.data());
    EXPECT_EQ(storage->bytes(), 100u);
    EXPECT_FALSE(storage->is_borrowed());
    EXPECT_EQ(storage->device(), Device::cpu);
    storage->release();
    EXPECT_EQ(storage->data(), nullptr);
    EXPECT_EQ(storage->device(), Device::meta);
    EXPECT_EQ(storage->bytes(), 100u);
    storage->release();
  }
  EXPECT_EQ(allocator.calls, (std::vector<std::string>{"allocate 100", "deallocate 100"}));
  EXPECT_TRUE(allocator.same);
}

TEST(Storage, WithoutBytesAllocatesNothing) {
  CountingAllocator allocator;
  { EXPECT_EQ(Storage::allocate(0, allocator)->device(), Device::cpu); }
  EXPECT_TRUE(allocator.calls.empty());
}

TEST(Storage, BeginsAtACacheLine) {
  for (const size_t bytes : {1, 3, 64, 1000, 100'000, 10'000'000}) {
    const auto storage = Storage::allocate(bytes);
    EXPECT_EQ(reinterpret_cast<uintptr_t>(storage->data()) % Allocator::kAlignment, 0u) << bytes;
  }
}

TEST(Storage, OnTheMetaDeviceHasNoMemory) {
  const auto storage = Storage::meta(10);
  EXPECT_EQ(storage->device(), Device::meta);
  EXPECT_EQ(storage->data(), nullptr);
  EXPECT_EQ(storage->bytes(), 10u);
  EXPECT_FALSE(storage->is_borrowed());
  EXPECT_STREQ(name_of(Device::meta), "meta");
  EXPECT_STREQ(name_of(Device::cpu), "cpu");
}

using EightBytes = std::array<std::byte, 8>;
int released = 0;
size_t released_bytes = 0;

TEST(Storage, OfAnotherOwnerKeepsItAliveUntilItIsReleased) {
  const auto bytes = std::make_shared<EightBytes>();
  released = 0;
  const auto on_release = [](void* owner, const std::byte* data, size_t size) {
    EXPECT_EQ(static_cast<EightBytes*>(owner)->data(), data);
    released_bytes = size;
    ++released;
  };
  {
    const auto storage = Storage::borrow(bytes->data(), 8, bytes, on_release);
    EXPECT_TRUE(storage->is_borrowed());
    EXPECT_EQ(bytes.use_count(), 2);
    storage->release();
    EXPECT_FALSE(storage->is_borrowed());
    EXPECT_EQ(bytes.use_count(), 1);
    EXPECT_EQ(released, 1);
    EXPECT_EQ(released_bytes, 8u);
  }
  EXPECT_EQ(released, 1) << "once";
  { const auto storage = Storage::borrow(bytes->data(), 8, bytes); }
  EXPECT_EQ(bytes.use_count(), 1) << "without a function to call";
}

}  // namespace
}  // namespace vitrail
