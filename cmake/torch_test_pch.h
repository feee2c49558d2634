// Precompiled for every test suite with torch; sources still include what they use.
#pragma once

#include "cmake/test_pch.h"
#include "cmake/torch_pch.h"
