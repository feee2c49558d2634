// Precompiled for every torch module; sources still include what they use.
#pragma once

#include <ATen/ATen.h>
#include <torch/csrc/autograd/custom_function.h>
#include <torch/csrc/autograd/variable.h>

#include <map>
#include <memory>
#include <string>
#include <vector>
