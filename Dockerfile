# One image for all programs: bin/coupon migrate, bin/coupon serve, bin/coupon work
FROM node:24-slim
ENV NODE_ENV=production
WORKDIR /app
COPY package.json package-lock.json ./
# The optional packages are the embedded PostgreSQL and a Node for machines without one: not needed here.
RUN npm ci --omit=dev --omit=optional && npm cache clean --force
COPY ley.config.js ./
COPY bin ./bin
COPY clients/typescript/src ./clients/typescript/src
COPY db ./db
# The guides, served at /docs/integrate and beside it.
COPY docs/*.md ./docs/
COPY src ./src
USER node
EXPOSE 8080
CMD ["bin/coupon", "serve"]
