// SPDX-License-Identifier: Apache-2.0
#pragma once
// The umbrella header: everything that most programs need.
//
//   base/error.h                     Error, which every function throws for invalid input
//   base/call_limit.h                CallLimit: a deadline or a flag that ends calls early
//   pipeline/model.h                 Model: predictions, features and attention maps of images, as the command line's
//   pipeline/dual_model.h            DualModel: images and texts in one embedding space, zero-shot classification
//   image/image_view.h               ImageView: images in memory of other libraries, without a copy
//   image/yuv.h                      to_rgb: frames of cameras and video decoders (NV12, YUYV)
//   tensor/tensor.h                  Tensor: strided n-dimensional arrays
//   models/load.h                    open_model, build_model: checkpoints of timm, Hugging Face, torchvision and others
//   models/model_bytes.h             ModelBytes: models whose files are in memory
//   models/class_gradients.h         class_gradients: of a class's logit, by pixels, tokens and other values
//   models/registry.h                architectures: the table of named model variants
//   sam/predictor.h                  sam::Predictor: masks by Segment Anything for points, boxes and masks
//   sam/automatic.h                  sam::automatic_masks: masks of everything in an image
//   image/decode.h                   read_image: JPEG, PNG, WebP, GIF, BMP, TIFF and PPM files
//   image/transform.h                EvalTransform, apply: images to model inputs, as timm and Hugging Face do
//   infer/preprocess.h               transform_of: the EvalTransform of a model's configuration
//   infer/function_session.h         FunctionSession: compiled inference of any function of named tensors
//   infer/session.h                  Session: compiled inference; logits, features and pooled embeddings
//   data/metrics/metrics.h           softmax, top_k, Accuracy
//   data/datasets/imagenet_labels.h  class names and WordNet ids of ImageNet-1k
//   train/recipe/recipe.h            parse_recipe: training configurations
//   train/trainer.h                  train: training and fine-tuning
//
// Layers and differentiable operations for models of one's own are in vitrail/nn/ and vitrail/ops/, one header each.
#include "vitrail/base/call_limit.h"
#include "vitrail/base/error.h"
#include "vitrail/data/datasets/imagenet_labels.h"
#include "vitrail/data/metrics/metrics.h"
#include "vitrail/image/decode.h"
#include "vitrail/image/image_view.h"
#include "vitrail/image/transform.h"
#include "vitrail/image/yuv.h"
#include "vitrail/infer/function_session.h"
#include "vitrail/infer/preprocess.h"
#include "vitrail/infer/session.h"
#include "vitrail/models/class_gradients.h"
#include "vitrail/models/load.h"
#include "vitrail/models/model_bytes.h"
#include "vitrail/models/registry.h"
#include "vitrail/pipeline/dual_model.h"
#include "vitrail/pipeline/model.h"
#include "vitrail/sam/automatic.h"
#include "vitrail/sam/predictor.h"
#include "vitrail/tensor/tensor.h"
#include "vitrail/train/recipe/recipe.h"
#include "vitrail/train/trainer.h"
