// SPDX-License-Identifier: Apache-2.0
#pragma once
// The 1,000 classes of ImageNet-1k (ILSVRC 2012) in the order of the models' outputs, which is that of their WordNet
// ids. The library contains the table; its source is imagenet_classes.txt.
#include <span>
#include <string_view>

namespace vitrail::data {

// The WordNet synonyms of each class, joined by ", ": element 281 is "tabby, tabby cat".  Not unique: elements 134 and
// 517 are both "crane".
std::span<const std::string_view> imagenet_class_names();

// The WordNet id of each class: element 281 is "n02123045".  Unique.
std::span<const std::string_view> imagenet_wordnet_ids();

}  // namespace vitrail::data
