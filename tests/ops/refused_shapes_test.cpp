// SPDX-License-Identifier: Apache-2.0
// Each of these arguments breaks one rule of an operation, whose error names the operation.
#include "tests/support/refused_calls.h"
#include "vitrail/ops/activation.h"
#include "vitrail/ops/attention.h"
#include "vitrail/ops/convolution.h"
#include "vitrail/ops/deformable_attention.h"
#include "vitrail/ops/elementwise.h"
#include "vitrail/ops/embedding.h"
#include "vitrail/ops/layer_norm.h"
#include "vitrail/ops/linear.h"
#include "vitrail/ops/loss.h"
#include "vitrail/ops/mask_loss.h"
#include "vitrail/ops/patchify.h"
#include "vitrail/ops/relative_attention.h"
#include "vitrail/ops/residual_add.h"
#include "vitrail/ops/resize.h"
#include "vitrail/ops/rms_norm.h"
#include "vitrail/ops/rotary.h"
#include "vitrail/ops/token_merging.h"
#include "vitrail/ops/tokens.h"
#include "vitrail/ops/window.h"

namespace vitrail::ops {
namespace {

using testing::expect_refused;

Tensor f(const Shape& shape) { return Tensor::zeros(shape); }
Tensor i64(const Shape& shape) { return Tensor::zeros(shape, DType::i64); }

TEST(RefusedShapes, OfAttention) {
  const Tensor q = f({2, 3, 5, 4}), k = f({2, 3, 7, 4});
  EXPECT_NO_THROW(attention(q, k, k, 1, f({3, 1, 7})));
  expect_refused("attention", {
                                  [&] {
                                    attention(f({3, 5, 4}), k, k, 1);
                                  },
                                  [&] {
                                    attention(q, f({3, 7, 4}), f({3, 7, 4}), 1);
                                  },
                                  [&] {
                                    attention(q, k, f({2, 3, 6, 4}), 1);
                                  },
                                  [&] {
                                    attention(q, f({1, 3, 7, 4}), f({1, 3, 7, 4}), 1);
                                  },
                                  [&] {
                                    attention(q, f({2, 1, 7, 4}), f({2, 1, 7, 4}), 1);
                                  },
                                  [&] {
                                    attention(q, f({2, 3, 7, 5}), f({2, 3, 7, 5}), 1);
                                  },
                                  [&] {
                                    attention(q, k, k, 1, i64({5, 7}));
                                  },
                                  [&] {
                                    attention(q, k, k, 1, f({2, 2, 3, 5, 7}));
                                  },
                              });
  expect_refused("self_attention", {
                                       [&] {
                                         self_attention(f({5, 12}), 2, 1);
                                       },
                                       [&] {
                                         self_attention(f({2, 5, 12}), 0, 1);
                                       },
                                       [&] {
                                         self_attention(f({2, 5, 12}), 3, 1);
                                       },
                                   });
}

TEST(RefusedShapes, OfRelativeAttentionAndRotary) {
  const auto attend = [](const Shape& qkv, int64_t heads, const Shape& rows, const Shape& columns,
                         std::array<int64_t, 2> grid) {
    return [=] { relative_self_attention(f(qkv), heads, 1, f(rows), f(columns), grid); };
  };
  EXPECT_NO_THROW(attend({2, 6, 24}, 2, {3, 4}, {5, 4}, {2, 3})());
  expect_refused("relative_self_attention", {
                                                attend({2, 6, 24}, 0, {3, 4}, {5, 4}, {2, 3}),
                                                attend({2, 6, 24}, 2, {3, 4}, {5, 4}, {0, 3}),
                                                attend({2, 6, 24}, 2, {3, 4}, {5, 4}, {2, 0}),
                                                attend({2, 6, 24}, 2, {3, 4}, {5, 4}, {-2, -3}),
                                                attend({6, 24}, 2, {3, 4}, {5, 4}, {2, 3}),
                                                attend({2, 7, 24}, 2, {3, 4}, {5, 4}, {2, 3}),
                                                attend({2, 6, 25}, 2, {3, 4}, {5, 4}, {2, 3}),
                                                attend({2, 6, 24}, 2, {5, 4}, {5, 4}, {2, 3}),
                                                attend({2, 6, 24}, 2, {3, 4}, {3, 4}, {2, 3}),
                                            });
  const auto rotate = [](const Shape& qkv, const Shape& table, int64_t heads) {
    return [=] { rotary(f(qkv), f(table), heads, RotaryPairs::halves); };
  };
  EXPECT_NO_THROW(rotate({2, 5, 24}, {2, 2, 4, 4}, 2)());
  expect_refused("rotary", {
                               rotate({5, 24}, {1, 1, 4, 4}, 2),
                               rotate({2, 5, 24}, {1, 1, 4, 4}, 0),
                               rotate({2, 5, 24}, {1, 1, 4, 4}, 5),
                               rotate({2, 5, 24}, {1, 4, 4}, 2),
                               rotate({2, 5, 24}, {3, 1, 4, 4}, 2),
                               rotate({2, 5, 24}, {1, 3, 4, 4}, 2),
                               rotate({2, 5, 24}, {1, 1, 6, 4}, 2),
                               rotate({2, 5, 24}, {1, 1, 4, 2}, 2),
                           });
}

TEST(RefusedShapes, OfDeformableAttention) {
  using Levels = std::vector<std::array<int64_t, 2>>;
  const auto attend = [](const Shape& values, const Shape& locations, const Shape& weights, const Levels& levels) {
    return [=] { deformable_attention(f(values), f(locations), f(weights), levels); };
  };
  const Shape values{2, 8, 2, 3}, locations{2, 3, 2, 2, 4, 2}, weights{2, 3, 2, 2, 4};
  const Levels levels{{2, 3}, {1, 2}};
  EXPECT_NO_THROW(attend(values, locations, weights, levels)());
  expect_refused("deformable_attention", {
                                             attend(values, locations, weights, {}),
                                             attend(values, locations, weights, {{2, 4}, {0, 2}}),
                                             attend({2, 8, 6}, locations, weights, levels),
                                             attend({2, 9, 2, 3}, locations, weights, levels),
                                             attend({1, 8, 2, 3}, locations, weights, levels),
                                             attend({2, 8, 1, 3}, locations, weights, levels),
                                             attend(values, {2, 3, 2, 8, 2}, weights, levels),
                                             attend(values, {2, 3, 2, 1, 4, 2}, weights, levels),
                                             attend(values, {2, 3, 2, 2, 0, 2}, {2, 3, 2, 2, 0}, levels),
                                             attend(values, {2, 3, 2, 2, 4, 3}, weights, levels),
                                             attend(values, locations, {2, 3, 2, 2, 5}, levels),
                                             attend(values, locations, {2, 3, 2, 8}, levels),
                                         });
}

TEST(RefusedShapes, OfConvolutionsMapsAndWindows) {
  const Tensor map = f({1, 4, 4, 8});
  expect_refused("depthwise_conv_3x3", {
                                           [&] {
                                             depthwise_conv_3x3(map, f({7, 3, 3}), f({8}));
                                           },
                                           [&] {
                                             depthwise_conv_3x3(map, f({8, 3, 2}), f({8}));
                                           },
                                           [&] {
                                             depthwise_conv_3x3(map, f({8, 3, 3}), f({7}));
                                           },
                                       });
  expect_refused("pixel_shuffle", {[&] { pixel_shuffle(map, 0); }, [&] { pixel_shuffle(map, 3); }});
  expect_refused("patchify", {
                                 [&] {
                                   patchify(f({1, 3, 4, 4}), 0, 2);
                                 },
                                 [&] {
                                   patchify(f({1, 3, 4, 4}), 2, 0);
                                 },
                                 [&] {
                                   patchify(f({1, 3, 4, 4}), 5, 2);
                                 },
                                 [&] {
                                   patchify(f({1, 3, 4, 4}), 2, 5);
                                 },
                                 [&] {
                                   patchify(f({3, 4, 4}), 2, 2);
                                 },
                             });
  expect_refused("resize_bilinear", {
                                        [&] { resize_bilinear(f({4}), 2, 2); },
                                        [&] {
                                          resize_bilinear(f({1, 0, 4}), 2, 2);
                                        },
                                        [&] {
                                          resize_bilinear(f({1, 4, 0}), 2, 2);
                                        },
                                        [&] {
                                          resize_bilinear(f({1, 4, 4}), 0, 2);
                                        },
                                        [&] {
                                          resize_bilinear(f({1, 4, 4}), 2, 0);
                                        },
                                    });
  expect_refused("resize_map", {
                                   [&] {
                                     resize_map(f({4, 4, 3}), 2, 2);
                                   },
                                   [&] {
                                     resize_map(f({1, 0, 4, 3}), 2, 2);
                                   },
                                   [&] {
                                     resize_map(f({1, 4, 4, 3}), 0, 2);
                                   },
                                   [&] {
                                     resize_map(f({1, 4, 4, 3}), 2, 0);
                                   },
                               });
  expect_refused("window_partition", {
                                         [&] {
                                           window_partition(f({4, 4, 8}), 2);
                                         },
                                         [&] { window_partition(map, 0); },
                                         [&] { window_partition(map, 2, f({7})); },
                                     });
  EXPECT_NO_THROW(window_unpartition(f({8, 4, 8}), 2, 4, 3));
  expect_refused("window_unpartition", {
                                           [&] {
                                             window_unpartition(f({4, 8}), 2, 4, 3);
                                           },
                                           [&] {
                                             window_unpartition(f({8, 4, 8}), 0, 4, 3);
                                           },
                                           [&] {
                                             window_unpartition(f({8, 4, 8}), 2, 0, 3);
                                           },
                                           [&] {
                                             window_unpartition(f({8, 4, 8}), 2, 4, 0);
                                           },
                                           [&] {
                                             window_unpartition(f({8, 5, 8}), 2, 4, 3);
                                           },
                                           [&] {
                                             window_unpartition(f({7, 4, 8}), 2, 4, 3);
                                           },
                                       });
}

TEST(RefusedShapes, OfLayers) {
  expect_refused("embedding", {[&] { embedding(f({2}), f({3, 4})); }, [&] { embedding(i64({2}), f({3})); }});
  expect_refused("linear", {
                               [&] {
                                 linear(f({}), f({3, 4}), {});
                               },
                               [&] {
                                 linear(f({2, 5}), f({3, 4}), {});
                               },
                               [&] {
                                 linear(f({2, 4}), f({3, 4}), f({4}));
                               },
                           });
  expect_refused("matmul", {
                               [&] { matmul(f({4}), f({4})); },
                               [&] {
                                 matmul(f({2, 3, 4}), f({4, 5}));
                               },
                               [&] {
                                 matmul(f({3, 4}), f({5, 4}));
                               },
                               [&] {
                                 matmul(f({2, 3, 4}), f({3, 4, 5}));
                               },
                               [&] {
                                 matmul(f({2, 1, 3, 4}), f({2, 2, 4, 5}));
                               },
                           });
  expect_refused("layer_norm", {
                                   [&] { layer_norm(f({}), {}, {}, 1e-6); },
                                   [&] {
                                     layer_norm(f({2, 4}), f({5}), {}, 1e-6);
                                   },
                                   [&] {
                                     layer_norm(f({2, 4}), {}, f({1, 4}), 1e-6);
                                   },
                               });
  expect_refused("rms_norm", {[&] { rms_norm(f({2, 4}), f({5}), 1e-6); }});
  expect_refused("silu_gate", {[&] { silu_gate(f({})); }, [&] { silu_gate(f({2, 5})); }});
  expect_refused("residual_add", {
                                     [&] {
                                       residual_add(f({2, 4}), f({4}));
                                     },
                                     [&] {
                                       residual_add(f({2, 4}), f({2, 4}), f({2}));
                                     },
                                     [&] {
                                       residual_add(f({2, 4}), f({2, 4}), {}, Tensor::zeros({4}, DType::f64));
                                     },
                                     [&] {
                                       residual_add(f({2, 4}), f({2, 4}), {}, f({2}));
                                     },
                                 });
  expect_refused("dropout", {[&] { dropout_mask({3, 4}, 0.5, 1, {0, 1}, DType::f32); }});
}

TEST(RefusedShapes, OfTokens) {
  expect_refused("cat", {
                            [&] { cat({}, 0); },
                            [&] {
                              cat({f({2, 3})}, 2);
                            },
                            [&] {
                              cat({f({2, 3})}, -3);
                            },
                            [&] {
                              cat({f({2, 3}), f({2, 4})}, 0);
                            },
                            [&] {
                              cat({f({2, 3}), f({3})}, 0);
                            },
                        });
  expect_refused("mean", {[&] { mean(f({2, 3}), 2); }, [&] { mean(f({2, 3}), -3); }});
  expect_refused("gather_tokens", {
                                      [&] {
                                        gather_tokens(f({2, 3}), {{0}, {1}});
                                      },
                                      [&] {
                                        gather_tokens(f({2, 3, 4}), {{0}});
                                      },
                                      [&] {
                                        gather_tokens(f({0, 3, 4}), {});
                                      },
                                      [&] {
                                        gather_tokens(f({2, 3, 4}), {{0, 1}, {1}});
                                      },
                                  });
  const Tensor x = f({2, 7, 4}), keys = f({2, 3, 7, 5});
  EXPECT_NO_THROW(merge_tokens(x, keys, f({2, 7}), 3, 1));
  expect_refused("merge_tokens", {
                                     [&] {
                                       merge_tokens(f({7, 4}), keys, {}, 1, 1);
                                     },
                                     [&] {
                                       merge_tokens(x, f({3, 7, 5}), {}, 1, 1);
                                     },
                                     [&] {
                                       merge_tokens(x, f({1, 3, 7, 5}), {}, 1, 1);
                                     },
                                     [&] {
                                       merge_tokens(x, f({2, 3, 6, 5}), {}, 1, 1);
                                     },
                                     [&] {
                                       merge_tokens(x, keys, f({2, 6}), 1, 1);
                                     },
                                     [&] { merge_tokens(x, keys, {}, 4, 1); },
                                     [&] { merge_tokens(x, keys, {}, -1, 1); },
                                     [&] { merge_tokens(x, keys, {}, 1, -1); },
                                 });
}

TEST(RefusedShapes, OfLosses) {
  const Tensor logits = f({2, 3});
  expect_refused("cross_entropy", {
                                      [&] { cross_entropy(f({3}), i64({1})); },
                                      [&] {
                                        cross_entropy(f({0, 3}), i64({0}));
                                      },
                                      [&] {
                                        cross_entropy(f({2, 0}), i64({2}));
                                      },
                                      [&] { cross_entropy(logits, i64({3})); },
                                      [&] {
                                        cross_entropy(logits, i64({2, 1}));
                                      },
                                      [&] { cross_entropy(logits, f({2})); },
                                      [&] {
                                        cross_entropy(logits, Tensor::from<int64_t>({2}, {0, 3}));
                                      },
                                      [&] {
                                        cross_entropy(logits, Tensor::from<int64_t>({2}, {-1, 0}));
                                      },
                                      [&] { cross_entropy(logits, i64({2}), 1); },
                                      [&] { cross_entropy(logits, i64({2}), -0.1); },
                                      [&] { cross_entropy(logits, i64({2}), 0, f({2})); },
                                      [&] {
                                        cross_entropy(logits, i64({2}), 0, f({1, 3}));
                                      },
                                  });
  expect_refused("weighted_sum", {[&] { weighted_sum({}, {}); }, [&] { weighted_sum({f({})}, {1, 2}); }});
  const Tensor masks = f({2, 3, 5});
  expect_refused("dice_loss", {
                                  [&] {
                                    dice_loss(f({2, 5}), f({2, 5}));
                                  },
                                  [&] {
                                    dice_loss(masks, f({2, 3, 5}));
                                  },
                                  [&] {
                                    dice_loss(masks, f({3, 5}));
                                  },
                                  [&] {
                                    dice_loss(masks, f({2, 4}));
                                  },
                                  [&] {
                                    dice_loss(f({2, 3, 0}), f({2, 0}));
                                  },
                              });
  expect_refused("focal_loss", {
                                   [&] {
                                     focal_loss(masks, f({2, 5}), {.alpha = -0.1});
                                   },
                                   [&] {
                                     focal_loss(masks, f({2, 5}), {.alpha = 1.1});
                                   },
                                   [&] {
                                     focal_loss(masks, f({2, 5}), {.gamma = 0.9});
                                   },
                                   [&] {
                                     focal_loss(masks, f({2, 5}), {.gamma = -1});
                                   },
                               });
}

}  // namespace
}  // namespace vitrail::ops
