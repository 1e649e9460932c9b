/* Stands in for the reference BLAS of MLX's Linux wheel: hands cblas_sgemm and cblas_dgemm on to NumPy's OpenBLAS.
 *
 * MLX passes 32-bit integers (LP64); NumPy's OpenBLAS takes 64-bit ones (ILP64). The prototypes below widen each
 * argument with its sign. Loaded with RTLD_GLOBAL before MLX, these definitions come first when MLX's symbols are bound.
 */
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef void (*sgemm_fn)(int order, int trans_a, int trans_b, int64_t m, int64_t n, int64_t k, float alpha,
                         const float *a, int64_t lda, const float *b, int64_t ldb, float beta, float *c, int64_t ldc);
typedef void (*dgemm_fn)(int order, int trans_a, int trans_b, int64_t m, int64_t n, int64_t k, double alpha,
                         const double *a, int64_t lda, const double *b, int64_t ldb, double beta, double *c,
                         int64_t ldc);

static sgemm_fn sgemm;
static dgemm_fn dgemm;
static int64_t calls;

/* Must be called once, before MLX computes anything. */
void tiny_llm_blas_route(void *to_sgemm, void *to_dgemm) {
    sgemm = (sgemm_fn)to_sgemm;
    dgemm = (dgemm_fn)to_dgemm;
}

/* Products routed so far: the proof that MLX reaches this library. */
int64_t tiny_llm_blas_calls(void) { return __atomic_load_n(&calls, __ATOMIC_RELAXED); }

void cblas_sgemm(int order, int trans_a, int trans_b, int m, int n, int k, float alpha, const float *a, int lda,
                 const float *b, int ldb, float beta, float *c, int ldc) {
    __atomic_fetch_add(&calls, 1, __ATOMIC_RELAXED);
    sgemm(order, trans_a, trans_b, m, n, k, alpha, a, lda, b, ldb, beta, c, ldc);
}

void cblas_dgemm(int order, int trans_a, int trans_b, int m, int n, int k, double alpha, const double *a, int lda,
                 const double *b, int ldb, double beta, double *c, int ldc) {
    __atomic_fetch_add(&calls, 1, __ATOMIC_RELAXED);
    dgemm(order, trans_a, trans_b, m, n, k, alpha, a, lda, b, ldb, beta, c, ldc);
}

#ifdef __cplusplus
}
#endif
