// SPDX-License-Identifier: Apache-2.0
'use strict'
// A web shop of four pages that visits itself. It knows nothing of the tracer in front of it, and writes
// down how many requests it made and how many of them failed.
const fs = require('fs')
const http = require('http')

const visits = Number(process.env.VISITS)
const failEvery = Number(process.env.FAIL_EVERY)
const pages = ['/cart', '/item/7', '/search?q=weir', '/checkout']

const server = http.createServer((request, response) => {
  const broken = request.url === '/broken'
  // A few slow answers, so that the percentiles lie apart.
  const wait = request.url === '/checkout' ? 12 : request.url === '/cart' ? 0 : 3
  setTimeout(() => {
    response.writeHead(broken ? 500 : 200, { 'content-type': 'text/plain' })
    response.end(broken ? 'broken\n' : 'here you are\n')
  }, wait)
})

function visit (port, path) {
  return new Promise((resolve, reject) => {
    http.get({ host: '127.0.0.1', port, path }, (response) => {
      response.on('end', () => resolve(response.statusCode))
      response.resume()
    }).on('error', reject)
  })
}

server.listen(0, '127.0.0.1', async () => {
  const done = { requests: 0, failed: 0 }
  for (let i = 1; i <= visits; i++) {
    const path = i % failEvery === 0 ? '/broken' : pages[i % pages.length]
    const status = await visit(server.address().port, path)
    done.requests++
    if (status === 500) done.failed++
  }
  server.close()
  if (server.closeAllConnections) server.closeAllConnections()
  if (global.flushTelemetry) await global.flushTelemetry()
  fs.writeFileSync(process.env.RESULT, JSON.stringify(done))
})
