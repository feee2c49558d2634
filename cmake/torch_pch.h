// Precompiled for every torch module; sources still include what they use. Autograd's headers would cost
// every file three seconds and save a few files five.
#pragma once

#include <ATen/ATen.h>

#include "cmake/pch.h"
