// SPDX-License-Identifier: Apache-2.0
// What the messages of refused operations say, and that what they describe at the limit is accepted.
#include <gtest/gtest.h>

#include <functional>

#include "tests/support/golden.h"
#include "tests/support/messages.h"
#include "tests/support/tensors.h"
#include "vitrail/base/random.h"
#include "vitrail/tensor/affine_quantization.h"
#include "vitrail/tensor/tensor.h"

namespace vitrail {
namespace {

using testing::counting;
using testing::error_of;

TEST(TensorErrors, NameTheOperationTheExpectedAndTheGiven) {
  const Tensor t = counting({2, 5, 1}), swapped = counting({2, 3}).transpose(0, 1);
  const Tensor meta = Tensor::empty({4, 2}, DType::f32, Device::meta);
  const std::pair<std::function<void()>, const char*> cases[] = {
      {[&] { t.size(3); }, "size: expected an axis of a rank-3 tensor, got 3"},
      {[&] { t.size(-4); }, "size: expected an axis of a rank-3 tensor, got -4"},
      {[&] { t.transpose(0, 3); }, "transpose: expected an axis of a rank-3 tensor, got 3"},
      {[&] { t.transpose(-5, 0); }, "transpose: expected an axis of a rank-3 tensor, got -5"},
      {[&] {
         t.permute({0, 1});
       },
       "permute: expected 3 axes, got 2"},
      {[&] {
         t.permute({0, 1, 2, 0});
       },
       "permute: expected 3 axes, got 4"},
      {[&] {
         t.permute({2, 0, -1});
       },
       "permute: expected each axis once, got axis 2 twice"},
      {[&] {
         t.permute({0, 1, 3});
       },
       "permute: expected an axis of a rank-3 tensor, got 3"},
      {[&] { t.narrow(3, 0, 1); }, "narrow: expected an axis of a rank-3 tensor, got 3"},
      {[&] { t.narrow(1, 4, 2); }, "narrow: expected a range inside 5, got 4 + 2"},
      {[&] { t.narrow(0, 3, 0); }, "narrow: expected a range inside 2, got 3 + 0"},
      {[&] { t.select(1, 5); }, "narrow: expected a range inside 5, got 5 + 1"},
      {[&] { t.select(1, -6); }, "narrow: expected a range inside 5, got -1 + 1"},
      {[&] { t.select(7, 0); }, "select: expected an axis of a rank-3 tensor, got 7"},
      {[&] { t.unsqueeze(4); }, "unsqueeze: expected an axis of a rank-4 tensor, got 4"},
      {[&] { t.squeeze(1); }, "squeeze: expected an axis of extent 1, got 5"},
      {[&] { t.squeeze(-4); }, "squeeze: expected an axis of a rank-3 tensor, got -4"},
      {[&] { t.flatten(2, 1); }, "flatten: expected the first axis before the last, got 2 and 1"},
      {[&] { t.flatten(0, 3); }, "flatten: expected an axis of a rank-3 tensor, got 3"},
      {[&] { t.flatten(3); }, "flatten: expected an axis of a rank-3 tensor, got 3"},
      {[&] {
         t.expand({5, 1});
       },
       "expand: expected at least 3 axes, got [5, 1]"},
      {[&] {
         t.expand({2, 4, 1});
       },
       "expand: expected a shape that [2, 5, 1] broadcasts to, got [2, 4, 1]"},
      {[&] {
         t.expand({2, 5, -2});
       },
       "expand: expected a shape that [2, 5, 1] broadcasts to, got [2, 5, -2]"},
      {[&] {
         t.view({-1, -1});
       },
       "view: expected at most one extent of -1, got [-1, -1]"},
      {[&] {
         t.view({3, -1});
       },
       "view: expected a shape of 10 elements, got [3, -1]"},
      {[&] {
         t.view({2, 6});
       },
       "view: expected a shape of 10 elements, got [2, 6]"},
      {[&] {
         t.view({-1, 0});
       },
       "view: expected a shape of 10 elements, got [-1, 0]"},
      {[&] {
         t.reshape({2, 6});
       },
       "reshape: expected a shape of 10 elements, got [2, 6]"},
      {[&] {
         t.reshape({-5, -2});
       },
       "reshape: expected extents of at least 0, got -5"},
      {[&] { swapped.view({6}); },
       "view: a tensor of shape [3, 2] and strides [1, 3] cannot be seen as [6] without a copy: use reshape"},
      {[&] {
         Tensor::from<float>({2, 2}, {1, 2, 3});
       },
       "tensor: expected 4 values for shape [2, 2], got 3"},
      {[&] {
         Tensor::empty({2, -3});
       },
       "tensor: expected extents of at least 0, got -3"},
      {[&] { Tensor().raw(); }, "tensor: expected a defined tensor, got an undefined one"},
      {[&] { meta.raw(); }, "tensor: expected data, got a meta tensor of shape [4, 2]"},
      {[&] { t.data<int64_t>(); }, "tensor: expected i64, got f32"},
      {[&] { Tensor::zeros({2}, DType::u8).data<float>(); }, "tensor: expected f32, got u8"},
      {[&] { t.item<float>(); }, "item: expected a tensor of one element, got shape [2, 5, 1]"},
      {[&] { meta.to(Device::cpu); }, "to: expected a tensor with data, got a meta tensor"},
      {[&] { t.copy_(counting({3})); }, "expand: expected a shape that [3] broadcasts to, got [2, 5, 1]"},
      {[&] {
         checked_numel(std::vector<int64_t>{int64_t{1} << 40, int64_t{1} << 40}, "x");
       },
       "x: expected fewer than 2^63 elements, got a larger shape"},
      {[&] { Shape{1, 1, 1, 1, 1, 1, 1, 1}.push_back(1); }, "shape: expected at most 8 dimensions, got more"}};
  for (const auto& [call, message] : cases) EXPECT_EQ(error_of(call), message);
}

TEST(Tensor, HasTheBytesOfItsElements) {
  const std::pair<DType, size_t> sizes[] = {{DType::f64, 8}, {DType::f32, 4}, {DType::bf16, 2}, {DType::f16, 2},
                                            {DType::i64, 8}, {DType::i32, 4}, {DType::i8, 1},   {DType::u8, 1}};
  for (const auto& [dtype, size] : sizes) {
    EXPECT_EQ(Tensor::empty({3, 5}, dtype).storage()->bytes(), 15 * size) << name_of(dtype);
    EXPECT_EQ(Tensor::empty({3, 5}, dtype, Device::meta).storage()->bytes(), 15 * size) << name_of(dtype);
    EXPECT_TRUE(testing::close(Tensor::zeros({3, 5}, dtype), Tensor::full({3, 5}, 0), 0)) << name_of(dtype);
    const Tensor row = counting({3, 5}).to(dtype).narrow(0, 1, 2);
    EXPECT_EQ(row.raw() - row.storage()->data(), static_cast<int64_t>(5 * size)) << "in bytes";
    EXPECT_EQ(row.offset(), 5) << "in elements";
  }
  const Tensor t = Tensor::empty({2, 3});
  EXPECT_EQ(t.dtype(), DType::f32);
  EXPECT_EQ(t.device(), Device::cpu);
  EXPECT_EQ(t.strides(), (Shape{3, 1}));
  EXPECT_EQ(t.offset(), 0);
}

TEST(Tensor, FullSaturatesAsConversionsDo) {
  EXPECT_EQ(Tensor::full({2}, 300, DType::u8).data<uint8_t>()[1], 255);
  EXPECT_EQ(Tensor::full({2}, -300, DType::i8).data<int8_t>()[1], -128);
  EXPECT_EQ(Tensor::full({2}, 2.9, DType::i32).data<int32_t>()[0], 2);
  EXPECT_EQ(Tensor::full({3}, 0.25, DType::boolean).data<bool>()[2], true);
  EXPECT_EQ(Tensor::full({}, 1.5, DType::f64).item<double>(), 1.5);
}

TEST(Tensor, RandomValuesAreNormalAndOfTheirOwnKey) {
  RandomStream random(random_key("randn", 7));
  const Tensor t = Tensor::randn({2, 4}, 7, DType::f64);
  for (int64_t i = 0; i < 8; ++i) EXPECT_EQ(t.data<double>()[i], random.normal()) << i;
  EXPECT_EQ(Tensor::randn({2}, 7).dtype(), DType::f32);
}

TEST(Tensor, ACopyKeepsWhatIsBesideItAndAllowsOverlap) {
  const Tensor memory = counting({8});
  memory.narrow(0, 2, 5).copy_(memory.narrow(0, 0, 5));  // to a later place in the same memory
  EXPECT_TRUE(testing::close(memory, Tensor::from<float>({8}, {0, 1, 0, 1, 2, 3, 4, 7}), 0));
  const Tensor empty = Tensor::zeros({2, 0, 3});
  EXPECT_NO_THROW(empty.copy_(Tensor::full({}, 1)));
  EXPECT_THROW(Tensor::zeros({3}).copy_(Tensor::zeros({2, 3})), Error) << "more axes than the target";
}

TEST(AffineQuantization, IsOfSignedBytesWithoutAnOffsetByDefault) {
  const AffineQuantization quantization;
  EXPECT_EQ(quantization.dtype, DType::i8);
  EXPECT_EQ(quantization.scale, 1);
  EXPECT_EQ(quantization.zero_point, 0);
}

}  // namespace
}  // namespace vitrail
